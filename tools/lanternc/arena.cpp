// The program is walked as it runs, with sizes in place of tensors: what is allocated is added, what is
// forgotten taken away; of a branch the side that takes more counts, of a loop one iteration.
#include "arena.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lantern/codegen/analysis.hpp"
#include "lantern/codegen/c/prelude.hpp"
#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::tool {

ByteCount::ByteCount(double bytes) {
  if (bytes != 0) terms_[{}] = bytes;
}

ByteCount ByteCount::named(const std::string& size) {
  ByteCount n;
  n.terms_[{size}] = 1;
  return n;
}

ByteCount& ByteCount::operator+=(const ByteCount& other) {
  for (const auto& [sizes, factor] : other.terms_)
    if ((terms_[sizes] += factor) == 0) terms_.erase(sizes);
  return *this;
}

ByteCount& ByteCount::operator-=(const ByteCount& other) {
  for (const auto& [sizes, factor] : other.terms_)
    if ((terms_[sizes] -= factor) == 0) terms_.erase(sizes);
  return *this;
}

ByteCount operator*(const ByteCount& a, const ByteCount& b) {
  ByteCount product;
  for (const auto& [x, p] : a.terms_)
    for (const auto& [y, q] : b.terms_) {
      std::vector<std::string> sizes = x;
      sizes.insert(sizes.end(), y.begin(), y.end());
      std::ranges::sort(sizes);
      if ((product.terms_[sizes] += p * q) == 0) product.terms_.erase(sizes);
    }
  return product;
}

std::optional<double> ByteCount::number() const {
  if (terms_.empty()) return 0;
  if (terms_.size() > 1 || !terms_.begin()->first.empty()) return std::nullopt;
  return terms_.begin()->second;
}

double ByteCount::magnitude() const {
  double sum = 0;
  for (const auto& [sizes, factor] : terms_)
    sum += factor * std::pow(1000.0, static_cast<double>(sizes.size()));
  return sum;
}

std::string ByteCount::str() const {
  std::string text;
  std::vector<std::pair<std::vector<std::string>, double>> terms(terms_.begin(), terms_.end());
  std::ranges::stable_partition(terms, [](const auto& term) { return term.second > 0; });
  for (const auto& [sizes, factor] : terms) {
    std::string term = std::to_string(static_cast<std::int64_t>(std::abs(factor)));
    if (sizes.empty()) term += factor == 1 ? " byte" : " bytes";
    for (const std::string& s : sizes) term += " * " + s;
    text += text.empty() ? (factor < 0 ? "-" : "") : (factor < 0 ? " - " : " + ");
    text += term;
  }
  return text.empty() ? "0 bytes" : text;
}

namespace {

using ir::Op;
using ir::Opcode;
using ir::Value;
using passes::LiveUses;

// What a chunk of memory begins on, and is a multiple of (lt_allocate).
constexpr double granule = 64;

class ArenaWalk {
 public:
  explicit ArenaWalk(const ir::Module& module) {
    for (const ir::Function* f : codegen::reachable(module)) uses_.emplace(f, LiveUses(*f));
    const ir::Block* body = module.entry->body;
    for (const Value* v : body->ops.back()->operands)
      if (v->type.is_tensor()) placed_.insert(codegen::storage_root(v));
    for (const Value* p : body->params) {
      if (!p->type.is_tensor()) continue;
      const std::string name = p->name ? p->name : "x" + std::to_string(p->index + (body->params.size() > 1));
      const auto& dims = p->type.dims();
      for (std::size_t d = 0; d < dims.size(); ++d)
        sizes_[{p, d}] =
            dims[d] != ir::dynamic
                ? ByteCount(static_cast<double>(dims[d]))
                : ByteCount::named(name + (dims.size() == 1 ? ".size()" : ".dim(" + std::to_string(d) + ")"));
    }
    block(body);
    use.peak = peak_;
  }

  ArenaUse use;

 private:
  void block(const ir::Block* b) {
    for (const Op* op : b->ops) operation(*op);
  }

  void operation(const Op& op) {
    switch (op.code) {
      case Opcode::forget_:
        if (allocated_.contains(codegen::memory_root(op.operands[0]))) now_ -= bytes(op.operands[0]);
        return;
      case Opcode::loop_:
        return loop(op);
      case Opcode::branch_:
        return branch(op);
      case Opcode::call_:
        return call(op);
      case Opcode::pop_:
        for (const Value* v : op.results)
          if (v->type.is_tensor() && ir::owns_elements(op)) allocate(v);
        return;
      case Opcode::gemm_:
      case Opcode::add_einsum_:
      case Opcode::add_matmul_:
        use.products = true;
        break;
      default:
        break;
    }
    if (allocates(op)) allocate(op.result());
  }

  static bool allocates(const Op& op) {
    if (op.results.size() != 1 || !op.result()->type.is_tensor() || op.in_place) return false;
    return !op.is(Opcode::undef_, Opcode::reshape_, Opcode::take_, Opcode::slice_,
                  Opcode::select_);  // no memory, or that of others
  }

  void allocate(const Value* v) {
    if (!uses_.at(v->block->function).elements_matter(v)) return;
    const ByteCount size = bytes(v);
    if (placed_.contains(v)) {
      use.results += size;
      return;
    }
    allocated_.insert(v);
    now_ += size;
    note();
  }

  void note() {
    if (now_.magnitude() > peak_.magnitude()) peak_ = now_;
  }

  void loop(const Op& op) {
    const ir::Block* body = op.blocks[1];
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      for (const ir::Block* b : op.blocks) like(b->params[i], op.operands[i]);
    std::unordered_map<const Value*, bool> forgotten;  // state -> may have lain in memory of others
    for (const Op* o : body->ops)
      if (o->is(Opcode::forget_)) forgotten[o->operands[0]] = o->operands.size() > 1;
    for (const Value* p : body->params)
      if (const auto it = forgotten.find(p); it != forgotten.end()) {
        if (it->second || !allocated_.contains(codegen::memory_root(op.operands[p->index]))) hold(p);
        allocated_.insert(p);
      }
    const ByteCount before = now_;
    block(op.blocks[0]);
    block(body);
    now_ = before;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const Value* result = op.results[i];
      like(result, op.operands[i]);
      if (!result->type.is_tensor()) continue;
      if (forgotten.contains(body->params[i]))
        allocated_.insert(result);
      else if (!codegen::keeps_memory(op, i))
        hold(result);
    }
  }

  void branch(const Op& op) {
    const ByteCount before = now_;
    ByteCount most = before;
    for (const ir::Block* b : op.blocks) {
      now_ = before;
      block(b);
      if (now_.magnitude() > most.magnitude()) most = now_;
    }
    now_ = most;
    take_results(op, *op.blocks[0]);
  }

  /// The results of an operation are what a block gives.
  void take_results(const Op& op, const ir::Block& from) {
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const Value* given = from.ops.back()->operands[i];
      like(op.results[i], given);
      if (allocated_.contains(codegen::memory_root(given))) allocated_.insert(op.results[i]);
    }
  }

  void call(const Op& op) {
    const ir::Block* body = op.callee->body;
    if (!running_.insert(op.callee).second) {
      use.recursive = true;
      return;
    }
    for (std::size_t i = 0; i < op.operands.size(); ++i) like(body->params[i], op.operands[i]);
    const ByteCount before = now_;
    block(body);
    const bool leaves = std::ranges::none_of(op.results, [](const Value* v) { return codegen::owns_memory(v->type); });
    if (leaves) now_ = before;
    take_results(op, *body);
    running_.erase(op.callee);
  }

  void hold(const Value* v) {
    allocated_.insert(v);
    now_ += bytes(v);
    note();
  }

  // ---- sizes

  ByteCount bytes(const Value* tensor) {
    ByteCount n(static_cast<double>(codegen::lane_bytes(tensor->type.element())));
    for (std::size_t d = 0; d < tensor->type.dims().size(); ++d) n = n * size(tensor, d);
    if (const auto known = n.number()) return ByteCount(std::ceil(*known / granule) * granule);
    return n;
  }

  /// One tensor has the shape of another, one number is another.
  void like(const Value* v, const Value* other) {
    if (v->type.is_tensor())
      for (std::size_t d = 0; d < v->type.dims().size(); ++d) sizes_[{v, d}] = size(other, d);
    else if (v->type.is_integer())
      numbers_[v] = number(other);
  }

  ByteCount size(const Value* tensor, std::size_t d) {
    if (const std::int64_t known = tensor->type.dims()[d]; known != ir::dynamic)
      return ByteCount(static_cast<double>(known));
    const auto found = sizes_.find({tensor, d});
    if (found != sizes_.end()) return found->second;
    ByteCount n = ByteCount::named("?");
    if (tensor->def)
      if (const auto source = ir::size_source(*tensor->def, d))
        n = source->dimension < 0 ? number(source->value)
                                  : size(source->value, static_cast<std::size_t>(source->dimension));
    return sizes_[{tensor, d}] = n;
  }

  ByteCount number(const Value* v) {
    const auto found = numbers_.find(v);
    if (found != numbers_.end()) return found->second;
    ByteCount n = ByteCount::named(v->name ? v->name : "?");
    if (v->def) {
      const Op& op = *v->def;
      const auto operand = [&](std::size_t i) { return number(op.operands[i]); };
      if (op.is(Opcode::constant_)) {
        n = ByteCount(static_cast<double>(op.integer));
      } else if (op.is(Opcode::dim_)) {
        n = size(op.operands[0], static_cast<std::size_t>(op.integer));
      } else if (op.is(Opcode::mul_)) {
        n = operand(0) * operand(1);
      } else if (op.is(Opcode::add_)) {
        (n = operand(0)) += operand(1);
      } else if (op.is(Opcode::sub_)) {
        (n = operand(0)) -= operand(1);
      }
    }
    return numbers_[v] = n;
  }

  std::unordered_map<const ir::Function*, LiveUses> uses_;
  std::unordered_set<const Value*> placed_, allocated_;
  std::unordered_set<const ir::Function*> running_;
  std::map<std::pair<const Value*, std::size_t>, ByteCount> sizes_;
  std::unordered_map<const Value*, ByteCount> numbers_;
  ByteCount now_, peak_;
};

}  // namespace

ArenaUse arena_use(const ir::Module& module) { return ArenaWalk(module).use; }

}  // namespace lantern::tool
