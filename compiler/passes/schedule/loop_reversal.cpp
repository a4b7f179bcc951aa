// One loop after the other, each by itself.
#include "lantern/compiler/passes/schedule/loop_reversal.hpp"

#include "lantern/compiler/passes/analysis/iterations.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/op.hpp"

namespace lantern::passes {

namespace {

/// What an iteration does in an order, besides computing.
bool has_ordered_effects(const Op* loop) {
  bool found = false;
  for (Block* b : loop->blocks)
    ir::walk(b, [&](const Op* op) {
      found |= keeps_order(*op) || is_on_tape(*op) || op->is(Opcode::check_);
    });
  return found;
}

bool may_reverse(const Uses& uses, const Op* loop, const CountedLoop& down, bool reassociate) {
  if (loop->integer != 0 || !ends_by_comparison(loop)) return false;
  if (!uses.of(loop->results[down.index]).empty() || has_ordered_effects(loop) || !is_doall(loop)) return false;
  for (std::size_t i = 0; i < loop->operands.size(); ++i) {
    if (i == down.index) continue;
    if (step_of(loop, i)) return false;
    if (reassociate) continue;
    const Uses inside(loop);
    const Combination c = combination(inside, loop, i);
    if (c.use && c.use->ordered_sum) return false;
  }
  return true;
}

void reverse(Op* loop, const CountedLoop& down) {
  Block *const head = loop->blocks[0], *const body = loop->blocks[1];
  Value* const index = body->params[down.index];
  ir::Builder before = ir::Builder::before(loop);
  loop->operands[down.index] = before.integer(0);
  // The condition was 0 < n, where n iterations are left.
  Op* const test = head->ops.back()->operands[0]->def;
  test->operands = {head->params[down.index], down.bound};
  ir::Builder b = ir::Builder::before(body->ops.front(), loop->loc);
  Value* const next = b.add({index, b.integer(1)});
  Op* const step = down.number->def;
  ir::walk(body, [&](Op* op) {
    if (op == next->def || op == step) return;
    for (Value*& v : op->operands) {
      if (v == index) v = next;
      if (v == down.number) v = index;
    }
  });
  body->ops.back()->operands[down.index] = next;
  std::erase(body->ops, step);
}

}  // namespace

void loop_reversal(ir::Module& module, bool reassociate) {
  const auto run = [&](ir::Function& f) {
    bool any = false;
    for (Op* loop : loops_in(f)) {
      const auto down = counts_down(loop);
      if (!down || !may_reverse(Uses(f), loop, *down, reassociate)) continue;
      reverse(loop, *down);
      any = true;
    }
    return any;
  };
  if (in_direct_style(module, run)) simplify(module);
}

}  // namespace lantern::passes
