// Two graphs, walked side by side. Functions that meet again are taken for equal: they are, if all else is.
#include "lantern/compiler/staging/same_function.hpp"

#include <bit>
#include <set>
#include <string_view>
#include <unordered_map>

namespace lantern::core {

namespace {

using ir::Op;
using ir::Value;

class Comparison {
 public:
  explicit Comparison(const Staging& staging) : staging_(staging) {}

  bool run(const ir::Function* a, const ir::Function* b) {
    if (!add(a, b)) return false;
    while (!todo_.empty()) {
      const auto [x, y] = todo_.back();
      todo_.pop_back();
      if (!blocks(x->body, y->body)) return false;
    }
    return true;
  }

 private:
  /// To be compared, unless that was begun.
  bool add(const ir::Function* a, const ir::Function* b) {
    if (a == b || !begun_.emplace(a, b).second) return true;
    if (a->cps != b->cps || a->result_types != b->result_types || !closed(a) || !closed(b)) return false;
    todo_.emplace_back(a, b);
    return true;
  }
  bool closed(const ir::Function* f) const {
    const StagedFunction* staged = staging_.find(f);
    return staged && !staged->open && !staging_.rules.contains(f);
  }

  bool blocks(const ir::Block* a, const ir::Block* b) {
    if (!defined(a->params, b->params) || a->ops.size() != b->ops.size()) return false;
    for (std::size_t i = 0; i < a->ops.size(); ++i)
      if (!ops(*a->ops[i], *b->ops[i])) return false;
    return true;
  }

  bool ops(const Op& a, const Op& b) {
    if (a.code != b.code ||
        std::bit_cast<std::uint64_t>(a.number) != std::bit_cast<std::uint64_t>(b.number) ||
        !attributes(a, b) || text(a) != text(b) || a.blocks.size() != b.blocks.size() ||
        !used(a.operands, b.operands))
      return false;
    if (!a.callee != !b.callee || (a.callee && !add(a.callee, b.callee))) return false;
    // A continuation may refer to itself.
    if (!defined(a.results, b.results)) return false;
    for (std::size_t i = 0; i < a.blocks.size(); ++i)
      if (!blocks(a.blocks[i], b.blocks[i])) return false;
    return true;
  }

  /// A tape has a number of its own for each use of the program that works on it.
  bool attributes(const Op& a, const Op& b) {
    if (a.is(ir::Opcode::push_) || a.is(ir::Opcode::pop_))
      return tapes_.try_emplace(a.integer, b.integer).first->second == b.integer;
    return a.integer == b.integer;
  }
  static std::string_view text(const Op& op) { return op.text ? op.text : ""; }

  bool defined(const std::vector<Value*>& a, const std::vector<Value*>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i]->type != b[i]->type) return false;
      values_.emplace(a[i], b[i]);
    }
    return true;
  }
  bool used(const std::vector<Value*>& a, const std::vector<Value*>& b) const {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto found = values_.find(a[i]);
      if (found == values_.end() || found->second != b[i]) return false;
    }
    return true;
  }

  const Staging& staging_;
  std::set<std::pair<const ir::Function*, const ir::Function*>> begun_;
  std::vector<std::pair<const ir::Function*, const ir::Function*>> todo_;
  std::unordered_map<const Value*, const Value*> values_;
  std::unordered_map<std::int64_t, std::int64_t> tapes_;
};

}  // namespace

bool same_function(const Staging& staging, const StagedFunction& a, const StagedFunction& b) {
  return a.captured == b.captured && Comparison(staging).run(a.function, b.function);
}

}  // namespace lantern::core
