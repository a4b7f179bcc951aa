// Eager tensors and their old versions; tag stripping.
#include "lantern/compiler/staging/datum.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#include "lantern/compiler/staging/mode.hpp"
#include "lantern/ir/error.hpp"
#include "lantern/ir/graph.hpp"
#include "lantern/runtime/tensor.hpp"

template class std::vector<lantern::core::Datum>;
template class std::vector<lantern::ir::Type>;

namespace lantern::core::detail {

void append(std::vector<Datum>& to, Datum d) { to.push_back(std::move(d)); }
void append(std::vector<ir::Type>& to, const ir::Type& t) { to.push_back(t); }

}  // namespace lantern::core::detail

namespace lantern::core {

Datum& Datum::operator=(Datum&& o) noexcept {
  if (this == &o) return *this;
  Boxed* const before = state_ == State::boxed ? bits_.box : nullptr;
  type_ = std::move(o.type_);
  state_ = std::exchange(o.state_, State::empty);
  graph_ = o.graph_;
  bits_ = o.bits_;
  if (before && before->release()) delete before;  // last: o may lie in it
  return *this;
}
void Datum::retain_box() const noexcept { bits_.box->retain(); }
void Datum::release_box() noexcept {
  if (bits_.box->release()) delete bits_.box;
}

Datum Datum::node(ir::Value* v) {
  Datum d(v->type, State::node);
  d.graph_ = current_graph();
  d.bits_.node = v;
  return d;
}

std::size_t element_size(ir::Kind k) {
  switch (k) {
    case ir::Kind::boolean: return 1;
    case ir::Kind::i32:
    case ir::Kind::f32: return 4;
    default: return 8;
  }
}

struct TensorBox::Older {
  TensorBox* newer;  ///< referred to
  std::size_t at, bytes;
  std::byte few[8];
  std::unique_ptr<std::byte[]> many;

  std::byte* before() { return many ? many.get() : few; }
};

namespace {
/// Held while old versions are looked at: one that gets memory of its own is no part of a chain any more.
std::mutex& old_versions() {
  static std::mutex instance;
  return instance;
}
}  // namespace

TensorBox* TensorBox::successor(std::size_t at, std::size_t bytes) {
  std::vector<std::byte>& mine = data();
  const bool takes_over =
      evaluation_ != 0 && evaluation_ == current_evaluation() && kept_ + bytes <= mine.size();
  auto next = std::make_unique<TensorBox>(shape, 0);
  if (!takes_over) {
    next->data_ = mine;
    return next.release();
  }
  auto older = std::make_unique<Older>(Older{next.get(), at, bytes, {}, nullptr});
  if (bytes > sizeof older->few) older->many = std::make_unique<std::byte[]>(bytes);
  std::copy_n(mine.data() + at, bytes, older->before());
  next->data_ = std::move(mine);
  next->kept_ = kept_ + bytes;
  next->retain();
  older_.store(older.release(), std::memory_order_release);
  return next.release();
}

void TensorBox::restore() {
  const std::lock_guard lock(old_versions());
  if (!older_.load(std::memory_order_relaxed)) return;
  std::vector<Older*> chain;
  const TensorBox* newest = this;
  while (Older* const older = newest->older_.load(std::memory_order_relaxed)) {
    chain.push_back(older);
    newest = older->newer;
  }
  data_ = newest->data_;
  for (std::size_t i = chain.size(); i-- > 0;)
    std::copy_n(chain[i]->before(), chain[i]->bytes, data_.data() + chain[i]->at);
  kept_ = 0;
  TensorBox* const next = chain[0]->newer;
  older_.store(nullptr, std::memory_order_release);
  delete chain[0];
  if (next->release()) delete next;
}

void TensorBox::read_older(std::size_t at, void* to, std::size_t bytes) const {
  constexpr int recent = 8;
  {
    const std::lock_guard lock(old_versions());
    const TensorBox* version = this;
    for (int steps = 0; steps < recent; ++steps) {
      Older* const older = version->older_.load(std::memory_order_relaxed);
      if (!older || (older->at <= at && at + bytes <= older->at + older->bytes)) {
        std::memcpy(to, older ? older->before() + (at - older->at) : version->data_.data() + at, bytes);
        return;
      }
      version = older->newer;
    }
  }
  std::memcpy(to, data().data() + at, bytes);
}

/// What this old version referred to, as its last reference; null where there is none or it has others.
TensorBox* TensorBox::take_newer() noexcept {
  Older* const older = older_.exchange(nullptr, std::memory_order_relaxed);
  if (!older) return nullptr;
  TensorBox* const next = older->newer;
  delete older;
  return next->release() ? next : nullptr;
}

// Versions that only this one keeps go one by one: there may be as many as the tensor has elements.
TensorBox::~TensorBox() {
  TensorBox* next = take_newer();
  while (next) {
    TensorBox* const after = next->take_newer();
    delete next;
    next = after;
  }
}

namespace {

std::string out_of_memory(const std::vector<std::int64_t>& shape) {
  std::string text = "out of memory: a tensor of shape [";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace

Datum make_tensor(ir::Kind element, std::vector<std::int64_t> shape) {
  if (!core::addressable(shape)) throw Error(out_of_memory(shape));
  std::size_t count = 1;
  for (std::int64_t d : shape) count *= static_cast<std::size_t>(d);
  const ir::Type type = ir::Type::tensor(element, shape);
  try {
    return Datum::boxed(new TensorBox(shape, count * element_size(element)), type);
  } catch (const std::bad_alloc&) {
    throw Error(out_of_memory(shape));
  } catch (const std::length_error&) {
    throw Error(out_of_memory(shape));
  }
}

const Datum& strip(const Datum& d) {
  const Datum* at = &d;
  while (at->is_tagged()) {
    const Datum& below = static_cast<const TaggedBox*>(at->box())->primal;
    if (below.empty()) break;
    at = &below;
  }
  return *at;
}

}  // namespace lantern::core
