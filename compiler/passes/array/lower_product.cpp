#include "lantern/compiler/passes/array/lower_product.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/gemm.hpp"
#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

namespace {

/// Along one dimension of a larger tensor: how many places there are before the smaller one's, and in all.
struct Extent {
  std::int64_t before = 0;
  Value* size = nullptr;  ///< null: the dimension as it is
};

class ProductEmitter {
 public:
  ProductEmitter(ir::Builder& b, const LoweredNest& nest) : b_(b), nest_(nest), member_(nest.members.front()) {}

  /// As loops, which read a copy with zeros around.
  Value* run_loops() {
    for (Element& e : member_.reads)
      if (lies_outside(e.at)) e = surrounded(e);
    return emit_nest(b_, LoweredNest{nest_.sizes, {member_}}).front();
  }

  Value* run() {
    if (!member_.stored) return nullptr;
    const bool windows = sums_windows(member_);  // the routine knows where a window lies outside
    for (Element& e : member_.reads)
      if (lies_outside(e.at) && !windows) e = surrounded(e);
    const NestIndices place = member_.result;
    if (!lies_outside(place)) return product(member_.base ? member_.base : zeros(member_.sizes, type().dims()));
    // "[2i+k-1]+=...": what is added outside is left behind.
    const std::vector<Value*> sizes = member_.base ? b_.sizes(member_.base) : member_.sizes;
    const std::vector<Extent> extents = extents_of(place, sizes);
    member_.result = moved(place, extents);
    Value* const all = product(zeros(extended(sizes, extents), {}));
    NestMember part = move(all, shifted(extents), every_index(place.size()), type());
    part.base = member_.base;
    part.sizes = sizes;
    return emit_nest(b_, LoweredNest{sizes, {part}}).front();
  }

 private:
  const ir::Type& type() const { return member_.op->result()->type; }

  static bool lies_outside(const NestIndices& at) {
    return std::ranges::any_of(at, [](const NestIndex& i) { return i.may_lie_outside(); });
  }

  Value* times(Value* a, std::int64_t factor) { return factor == 1 ? a : b_.mul({a, b_.integer(factor)}); }

  /// The places that an index takes, and all of the dimension. Indices are added only (calls_routine).
  std::vector<Extent> extents_of(const NestIndices& at, const std::vector<Value*>& sizes) {
    std::vector<Extent> all;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (!at[d].may_lie_outside()) {
        all.push_back({});
        continue;
      }
      const std::int64_t before = std::max<std::int64_t>(0, -at[d].constant);
      Value* end = b_.integer(at[d].constant + 1);
      for (const auto& [k, factor] : at[d].terms) {
        Value* const last = b_.sub({nest_.sizes[static_cast<std::size_t>(k)], b_.integer(1)});
        end = b_.add({end, times(last, factor)});
      }
      all.push_back({before, b_.add({larger(end, sizes[d]), b_.integer(before)})});
    }
    return all;
  }

  /// The larger of two sizes: of a window that is moved by one place at a time it is known.
  Value* larger(Value* a, Value* b) {
    const IndexForm more = index_form(a) - index_form(b);
    if (never_negative(more, *member_.op)) return a;
    if (never_negative(IndexForm() - more, *member_.op)) return b;
    return b_.select({b_.lt({a, b}), b, a});
  }

  static std::vector<Value*> extended(std::vector<Value*> sizes, const std::vector<Extent>& extents) {
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (extents[d].size) sizes[d] = extents[d].size;
    return sizes;
  }
  static NestIndices moved(NestIndices at, const std::vector<Extent>& extents) {
    for (std::size_t d = 0; d < at.size(); ++d)
      if (extents[d].size) {
        at[d].constant += extents[d].before;
        at[d].inside = true;
      }
    return at;
  }
  static NestIndices shifted(const std::vector<Extent>& extents) {
    return moved(every_index(extents.size()), extents);
  }

  Value* zeros(const std::vector<Value*>& sizes, std::span<const std::int64_t> dims) {
    std::vector<Value*> filling{b_.number(0, ir::Type(type().element()))};
    filling.insert(filling.end(), sizes.begin(), sizes.end());
    std::vector<std::int64_t> known(dims.begin(), dims.end());
    if (known.empty())
      for (const Value* s : sizes) known.push_back(constant(s) ? constant(s)->integer : ir::dynamic);
    return b_.emit(Opcode::fill_, filling, 0, known);
  }

  /// result[to] = from[at].
  NestMember move(Value* from, NestIndices at, NestIndices to, const ir::Type& result) {
    NestMember m;
    m.op = b_.module().new_op(Opcode::einsum_, b_.block());
    m.op->loc = b_.loc;
    b_.module().add_result(m.op, result);
    m.reads = {{from, std::move(at)}};
    m.result = std::move(to);
    m.sums = m.stored = true;
    return m;
  }

  /// A tensor in a larger one, with zeros around.
  Element surrounded(const Element& e) {
    const std::vector<Value*> sizes = b_.sizes(e.of);
    const std::vector<Extent> extents = extents_of(e.at, sizes);
    Value* const around = zeros(extended(sizes, extents), {});
    NestMember copy = move(e.of, every_index(sizes.size()), shifted(extents), around->type);
    copy.memory = around;
    return {emit_nest(b_, LoweredNest{sizes, {copy}}).front(), moved(e.at, extents)};
  }

  Value* product(Value* base) {
    std::vector<Value*> operands{base};
    for (const Element& e : member_.reads) operands.push_back(e.of);
    const ir::Notation n = as_accumulation(member_);
    const auto plain = [](const NestIndices& at) {
      return std::ranges::all_of(at, [](const NestIndex& i) { return i.is_plain(); });
    };
    const bool all_plain = plain(member_.result) && std::ranges::all_of(member_.reads, [&](const Element& e) {
                             return plain(e.at);
                           });
    const bool outside = std::ranges::any_of(member_.reads, [](const Element& e) { return lies_outside(e.at); });
    return b_.emit(Opcode::add_einsum_, operands, all_plain || outside ? 0 : ir::inside, {}, ir::canonical(n));
  }

  ir::Builder& b_;
  const LoweredNest& nest_;
  NestMember member_;
};

}  // namespace

bool calls_routine(const NestMember& m, const std::vector<std::int64_t>& sizes) {
  if (!m.sums || !m.op->result()->type.is_float_element()) return false;
  const auto c = contraction(as_accumulation(m));
  if (!c) return false;
  // How far a place lies below zero must be known.
  const auto counts_down = [](const NestIndices& at) {
    return std::ranges::any_of(at, [](const NestIndex& i) {
      return i.may_lie_outside() && std::ranges::any_of(i.terms, [](const auto& t) { return t.second < 0; });
    });
  };
  if (counts_down(m.result) || std::ranges::any_of(m.reads, [&](const Element& e) { return counts_down(e.at); }))
    return false;
  // Loops ask at every point whether it lies outside, which takes ten times as long as the product.
  const bool asks = std::ranges::any_of(m.reads, [](const Element& e) {
    return std::ranges::any_of(e.at, [](const NestIndex& i) { return i.may_lie_outside(); });
  });
  const std::int64_t least = asks ? large_product / 16 : large_product;
  std::int64_t known = 1;
  for (const std::string& letters : {c->rows, c->columns, c->sums}) {
    std::int64_t group = 1;
    for (const char letter : letters) {
      const std::int64_t size = sizes[static_cast<std::size_t>(letter - 'a')];
      group = size == ir::dynamic || group == ir::dynamic ? ir::dynamic : std::min(group * size, large_product);
    }
    if (group == 1) return false;
    known = group == ir::dynamic || known >= large_product ? large_product : std::min(known * group, large_product);
  }
  return known >= least;
}

bool sums_windows(const NestMember& m) {
  if (!m.sums || m.reads.size() != 2 || !m.op->result()->type.is_float_element()) return false;
  return channel_window(as_accumulation(m), m.reads[0].of->type, m.reads[1].of->type).has_value();
}

Value* emit_product(ir::Builder& b, const LoweredNest& nest) { return ProductEmitter(b, nest).run(); }
Value* emit_windows(ir::Builder& b, const LoweredNest& nest) { return ProductEmitter(b, nest).run_loops(); }

}  // namespace lantern::passes
