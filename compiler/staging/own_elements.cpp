// Reads of what a loop started from become reads of its state.
#include "lantern/compiler/staging/own_elements.hpp"

#include <algorithm>

namespace lantern::core::detail {

namespace {

using ir::Op;
using ir::Opcode;
using ir::Value;

bool is_access(const Op& op) { return op.is(Opcode::get_) || op.is(Opcode::set_) || op.is(Opcode::add_at_); }

/// The position of the only operation directly in the body that takes `v` as a tensor to update, or that of
/// the yield; nothing where `v` has another use.
std::ptrdiff_t next_update(const ir::Block* body, const Value* v, std::vector<const Op*>& reads) {
  std::ptrdiff_t found = -1;
  bool simple = true;
  for (std::size_t at = 0; at < body->ops.size(); ++at) {
    const auto look = [&](const Op* op) {
      for (std::size_t k = 0; k < op->operands.size(); ++k) {
        if (op->operands[k] != v) continue;
        if (k == 0 && op->is(Opcode::get_)) {
          reads.push_back(op);
          continue;
        }
        simple &= op == body->ops[at] && found < 0 && (op->is(Opcode::yield_) || (k == 0 && is_access(*op)));
        found = static_cast<std::ptrdiff_t>(at);
      }
    };
    look(body->ops[at]);
    for (ir::Block* b : body->ops[at]->blocks) ir::walk(b, look);
  }
  return simple ? found : -1;
}

bool uses(const ir::Block* block, const Value* v) {
  bool any = false;
  ir::walk(const_cast<ir::Block*>(block),
           [&](const Op* op) { any |= std::ranges::find(op->operands, v) != op->operands.end(); });
  return any;
}

void read_own_elements(Op* loop, std::size_t state) {
  const ir::Block *condition = loop->blocks[0], *body = loop->blocks[1];
  const Value *start = loop->operands[state], *param = body->params[state];
  if (!start->type.is_tensor() || start->def || !start->block->parent ||
      !start->block->parent->is(Opcode::loop_) || std::ranges::count(loop->operands, start) != 1 ||
      uses(condition, start) || uses(condition, condition->params[state]))
    return;

  // What happens to the state in a trip, from the first update on.
  std::vector<const Op*> accesses;
  std::ptrdiff_t first = -1;
  for (const Value* v = param;;) {
    const std::ptrdiff_t at = next_update(body, v, accesses);
    if (at < 0) return;
    const Op* op = body->ops[static_cast<std::size_t>(at)];
    if (op->is(Opcode::yield_)) {
      if (op->operands[state] != v || first < 0) return;
      break;
    }
    if (first < 0) first = at;
    accesses.push_back(op);
    v = op->result();
  }

  // The reads of the start: all of them before that.
  std::vector<Op*> reads;
  bool simple = true;
  for (std::ptrdiff_t at = 0; at < static_cast<std::ptrdiff_t>(body->ops.size()); ++at) {
    const auto look = [&](Op* op) {
      for (std::size_t k = 0; k < op->operands.size(); ++k) {
        if (op->operands[k] != start || op->is(Opcode::dim_)) continue;
        simple &= k == 0 && op->is(Opcode::get_) && at < first;
        reads.push_back(op);
      }
    };
    look(body->ops[static_cast<std::size_t>(at)]);
    for (ir::Block* b : body->ops[static_cast<std::size_t>(at)]->blocks) ir::walk(b, look);
  }
  if (!simple || reads.empty()) return;
  accesses.insert(accesses.end(), reads.begin(), reads.end());

  // An index that differs from trip to trip, in the same place everywhere.
  const auto counts = [&](const Value* v) {
    if (v->def || v->block != body || !v->type.is_integer()) return false;
    const Value* next = body->ops.back()->operands[v->index];
    if (!next->def || !next->def->is(Opcode::add_) || next->def->operands[0] != v) return false;
    const Op* step = next->def->operands[1]->def;
    return step && step->is(Opcode::constant_) && step->integer != 0;
  };
  const auto rank = static_cast<std::size_t>(start->type.rank());
  for (std::size_t d = 0; d < rank; ++d) {
    // The indices of `set` and `add_at` stand in front of the element.
    const Value* index = reads.front()->operands[1 + d];
    if (!counts(index)) continue;
    if (std::ranges::any_of(accesses, [&](const Op* op) { return op->operands[1 + d] != index; })) continue;
    for (Op* op : reads) op->operands[0] = const_cast<Value*>(param);
    return;
  }
}

}  // namespace

void read_own_elements(Op* loop) {
  for (std::size_t i = 0; i < loop->operands.size(); ++i) read_own_elements(loop, i);
}

}  // namespace lantern::core::detail
