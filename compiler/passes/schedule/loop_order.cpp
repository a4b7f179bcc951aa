// Effects, checks and updates of tensors that a loop would pass.
#include "lantern/compiler/passes/schedule/loop_order.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/compiler/passes/schedule/views.hpp"

namespace lantern::passes {

namespace {

/// An index that runs from the start of a dimension to its end.
bool runs_through(const Op& access, std::size_t dimension, const EqualNumbers& equal) {
  const Value* const index = access.operands[1 + dimension];
  const Op* const loop = index->def ? nullptr : index->block->parent;
  if (!loop || !loop->is(Opcode::loop_) || index->block != loop->blocks[1]) return false;
  const auto count = counted(loop);
  if (!count || count->index != index->index) return false;
  const Op* const first = constant(loop->operands[count->index]);
  return first && first->integer >= 0 &&
         equal(index_form(count->bound), size_form(access.operands[0], dimension));
}

}  // namespace

bool uses_tapes(const Op* loop) {
  bool found = false;
  ir::walk(loop->blocks[1], [&](const Op* op) { found |= is_on_tape(*op); });
  return found;
}

bool may_fail(const Op* loop, const EqualNumbers& equal) {
  bool may = false;
  ir::walk(loop->blocks[1], [&](const Op* op) {
    if (is_access(*op)) {
      for (std::size_t d = 0; d < static_cast<std::size_t>(op->operands[0]->type.rank()); ++d)
        may |= !in_range(*op, d) && !runs_through(*op, d, equal);
      return;
    }
    const bool harmless = ir::info(op->code).elementwise || op->is(Opcode::constant_) ||
                          op->is(Opcode::yield_) || op->is(Opcode::loop_) || op->is(Opcode::branch_) ||
                          op->is(Opcode::dim_) || op->is(Opcode::cast_) || op->is(Opcode::undef_);
    may |= !harmless || divides_integers(*op);
  });
  return may;
}

std::optional<Between> between(const std::vector<Op*>& loops, const Op* last, std::ptrdiff_t most) {
  return between(loops, last, most, [](Op* op) { return std::vector<Op*>{op}; });
}

bool undisturbed(const std::vector<Op*>& loops, const Op* last, const Between& between,
                 const Reordering& how) {
  std::unordered_set<const Value*> read, updated;
  bool saves = uses_tapes(last);
  for (const Op* loop : loops) {
    saves |= uses_tapes(loop);
    ir::walk(loop->blocks[1], [&](const Op* op) {
      for (const Value* v : op->operands)
        if (v->type.is_tensor()) read.insert(viewed(v));
    });
  }
  for (const Value* v : last->operands) {
    if (!v->type.is_tensor() || how.handed_on.contains(v)) continue;
    if (read.contains(viewed(v))) return false;
    updated.insert(viewed(v));
  }
  // What the host saves is saved in its own order, unless an iteration saves something, too.
  const auto in_order = [&](const Op& op) { return keeps_order(op) || (saves && is_on_tape(op)); };
  for (const Op* op : between.earlier) {
    bool disturbs = false;
    const auto look = [&](const Op* o) {
      disturbs |= o->is(Opcode::check_) ? how.first_fails : in_order(*o);
      if (updates(*o))
        for (const Value* v : o->operands) disturbs |= v->type.is_tensor() && read.contains(viewed(v));
    };
    look(op);
    for (Block* b : op->blocks) ir::walk(b, look);
    if (disturbs) return false;
  }
  for (const Op* op : between.later) {
    bool disturbs = false;
    const auto look = [&](const Op* o) {
      disturbs |= o->is(Opcode::check_) ? how.last_fails : in_order(*o);
      if (o->is(Opcode::reshape_) || o->is(Opcode::dim_)) return;
      for (const Value* v : o->operands) disturbs |= v->type.is_tensor() && updated.contains(viewed(v));
    };
    look(op);
    for (Block* b : op->blocks) ir::walk(b, look);
    if (disturbs) return false;
  }
  return true;
}

}  // namespace lantern::passes
