// Every later write against the element that was read; every read against what was written.
#include "lantern/compiler/passes/analysis/reaching_definition.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/def_chain.hpp"

namespace lantern::passes {

namespace {

/// The loop that a tensor is state of, the outermost one, and which of its state.
class Outermost {
 public:
  explicit Outermost(const Op& get) : get_(get) {}
  const Op* loop = nullptr;
  std::size_t state = 0;

  bool find() {
    const Value* v = get_.operands[0];
    for (;;) {
      const Op* const op = owner(v);
      if (!op) return loop != nullptr;
      if (!v->def) {
        if (!op->is(Opcode::loop_) || v->block != op->blocks[1]) return false;
        loop = op;
        state = v->index;
        v = op->operands[v->index];
      } else if (is_write(*op)) {
        v = op->operands[0];
      } else if (op->is(Opcode::loop_)) {
        v = op->operands[v->index];
      } else if (op->is(Opcode::branch_)) {
        v = op->blocks[0]->ops.back()->operands[v->index];
      } else {
        return loop != nullptr;
      }
      // Where the tensor was made is of no interest: only the loops around the reading.
      if (loop && !contains(loop, v->block) && !around(v)) return true;
    }
  }

 private:
  /// True where v is state of a loop around the one found so far.
  bool around(const Value* v) const {
    const Block* const outer = loop->parent;
    return v->block == outer && outer->parent && outer->parent->is(Opcode::loop_) &&
           outer == outer->parent->blocks[1];
  }

  static bool contains(const Op* loop, const Block* block) {
    for (const Block* b = block; b; b = b->parent ? b->parent->parent : nullptr)
      if (b->parent == loop) return true;
    return false;
  }

  const Op& get_;
};

}  // namespace

Value* reaching_definition(const Op& get) {
  if (!get.is(Opcode::get_) || !get.operands[0]->type.is_tensor()) return nullptr;
  Outermost outermost(get);
  if (!outermost.find()) return nullptr;
  const Op* const loop = outermost.loop;
  DefChain versions;
  if (!versions.collect_defs(loop, outermost.state) || !versions.values.contains(get.operands[0])) return nullptr;
  const auto independent = [&](Iteration when) {
    return std::ranges::all_of(versions.writes, [&](const Op* w) { return is_independent_of(get, *w, loop, when); });
  };
  if (independent(Iteration::later)) return loop->results[outermost.state];
  return independent(Iteration::earlier) ? loop->operands[outermost.state] : nullptr;
}

}  // namespace lantern::passes
