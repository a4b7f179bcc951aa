// Inner loops first, so that what no loop around changes comes out of all of them.
#include "lantern/compiler/passes/array/invariant_integers.hpp"

#include <algorithm>
#include <ranges>
#include <unordered_set>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/external.hpp"

namespace lantern::passes {

namespace {

/// Integers from integers, and sizes, without a way to fail.
bool computes_integer(const Op& op) {
  if (op.results.size() != 1 || !(op.result()->type == ir::I64) || !op.blocks.empty() ||
      op.is(Opcode::constant_))
    return false;
  if (op.is(Opcode::div_) || op.is(Opcode::rem_)) {
    const Value* by = op.operands[1];
    if (by->def && ir::is_count_of_ranks(*by->def)) return true;
    const Op* number = constant(by);
    return number && number->integer != 0;
  }
  if (op.is(Opcode::external_)) return ir::is_constant_call(op);
  return op.is(Opcode::dim_) || op.is(Opcode::cast_) || ir::info(op.code).elementwise;
}

class Motion {
 public:
  explicit Motion(Op* loop) : loop_(loop), body_(loop->blocks[1]) {}

  bool run() {
    Renaming names;
    ir::Builder before = ir::Builder::before(loop_);
    std::unordered_set<const Op*> moved;
    for (Op* op : body_->ops) {
      if (!computes_integer(*op)) continue;
      if (!std::ranges::all_of(op->operands,
                               [&](const Value* v) { return constant(v) || !made_in(v, body_); }))
        continue;
      for (Value*& v : op->operands)
        if (const Op* c = constant(v); c && made_in(v, body_))
          v = ir::clone_over(before, *c, {}, names)->result();
      moved.insert(op);
      before.take(op);  // from here on it is made outside
    }
    if (moved.empty()) return false;
    std::erase_if(body_->ops, [&](const Op* op) { return moved.contains(op); });
    return true;
  }

 private:
  Op* loop_;
  Block* body_;
};

}  // namespace

void invariant_integers(ir::Module& module) {
  bool any = false;
  for (ir::Function* f : module.functions()) {
    if (!is_direct(*f)) continue;
    bool here = false;
    for (Op* loop : loops_in(*f) | std::views::reverse) here |= Motion(loop).run();
    if (here) cse(*f);
    any |= here;
  }
  if (any) eliminate_dead(module);
}

}  // namespace lantern::passes
