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

/// The number of ranks, also where it is only asked for if a loop runs (below).
bool counts_ranks(const Value* v) {
  if (v->def && v->def->is(Opcode::branch_)) v = v->def->blocks[0]->yields()[v->index];
  return v->def && ir::is_count_of_ranks(*v->def);
}

/// Integers from integers, and sizes, without a way to fail; and ranks, which need an engine.
bool computes_integer(const Op& op) {
  if (op.results.size() != 1 || !(op.result()->type == ir::I64) || !op.blocks.empty() ||
      op.is(Opcode::constant_))
    return false;
  if (op.is(Opcode::div_, Opcode::rem_)) {
    const Value* by = op.operands[1];
    if (counts_ranks(by)) return true;
    const Op* number = constant(by);
    return number && number->integer != 0;
  }
  if (op.is(Opcode::external_)) return ir::is_constant_call(op);
  return op.is(Opcode::dim_, Opcode::cast_) || ir::info(op.code).elementwise;
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
      if (op->is(Opcode::external_) && !takes_condition()) continue;
      moved.insert(op);
      if (op->is(Opcode::external_))
        take_if_it_runs(op, before);
      else
        before.take(op);  // from here on it is made outside
    }
    if (moved.empty()) return false;
    std::erase_if(body_->ops, [&](const Op* op) { return moved.contains(op); });
    return true;
  }

 private:
  /// Whether the loop's condition can be asked for twice.
  bool takes_condition() const {
    return std::ranges::all_of(loop_->blocks[0]->ops, [](const Op* op) {
      return op->is(Opcode::yield_) || is_pure(*op);
    });
  }
  /// An engine may be missing, which is an error only of a program that asks for it. Else the value is 1, which divides.
  void take_if_it_runs(Op* op, ir::Builder& before) {
    before.loc = op->loc;
    Op* const asked = before.branch(first_condition(before, loop_), {ir::I64});
    ir::Builder inside(before.module(), asked->blocks[0]), otherwise(before.module(), asked->blocks[1]);
    inside.take(op);
    inside.yield({op->result()});
    otherwise.yield({otherwise.integer(1)});
    ir::walk(body_, [&](Op* user) { std::ranges::replace(user->operands, op->result(), asked->result()); });
  }

  Op* loop_;
  Block* body_;
};

}  // namespace

void invariant_integers(ir::Module& module) {
  const auto run = [](ir::Function& f) {
    bool any = false;
    for (Op* loop : loops_in(f) | std::views::reverse) any |= Motion(loop).run();
    if (any) cse(f);
    return any;
  };
  if (in_direct_style(module, run)) eliminate_dead(module);
}

}  // namespace lantern::passes
