// Uses that somebody needs, and what is written between them.
#include "lantern/compiler/passes/analysis/live_uses.hpp"

#include <algorithm>

#include "lantern/ir/checkpoint.hpp"
#include "lantern/ir/external.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

using ir::Op;
using ir::Opcode;

namespace {

/// Free of effects, so that nothing misses it when its results are not used.
bool removable(const Op& op) {
  if (op.is(Opcode::ref_new_, Opcode::slot_, Opcode::ref_get_)) return true;
  if (op.is(Opcode::external_)) return !ir::is_ordered_call(op);
  return ir::info(op.code).effect == ir::Effect::none && !op.is(Opcode::yield_);
}

/// A yield whose operands matter one by one: those of a branch or a loop's body.
bool yields_to_construct(const Op& op) {
  const Op* around = op.parent->parent;
  if (!op.is(Opcode::yield_) || !around) return false;
  return around->is(Opcode::branch_) || (around->is(Opcode::loop_) && op.parent == around->blocks[1]);
}

/// Only the type of such an operand matters.
bool only_type_matters(const Op& op, std::size_t i) {
  if (op.is(Opcode::ref_new_)) return op.operands[i]->type.is_scalar();
  return op.is(Opcode::cast_like_) && i == 1;
}

bool may_write_memory(const Op& op) {
  return op.is(Opcode::jump_, Opcode::call_, Opcode::loop_, Opcode::ref_set_, Opcode::ref_add_,
               Opcode::ref_acc_, Opcode::push_, Opcode::pop_, Opcode::check_, Opcode::forget_, Opcode::print_,
               Opcode::external_) ||
         op.in_place;
}

}  // namespace

LiveUses::LiveUses(const ir::Function& function) {
  std::vector<const Op*> ops;
  int epoch = 0;
  ir::walk(function.body, [&](const Op* op) {
    ops.push_back(op);
    epoch_[op] = epoch;
    epoch += may_write_memory(*op);
    if (op->is(Opcode::forget_)) ops.pop_back();  // no use
  });
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const int position = static_cast<int>(i);
    if (ops[i]->is(Opcode::ref_get_)) reads_.emplace(ops[i], position);
    if (ops[i]->is(Opcode::call_, Opcode::jump_)) calls_.push_back(position);
    for (const ir::Value* v : ops[i]->operands)
      if (v->type.is_ref() && !ops[i]->is(Opcode::ref_get_)) cell_writes_[v].last = position;
  }
  find_live(ops);
  for (std::size_t i = ops.size(); i-- > 0;) {
    const Op* op = ops[i];
    if (!live(op)) continue;
    for (std::size_t k = 0; k < op->operands.size(); ++k) {
      if (!live_operand(op, k)) continue;
      Use& use = uses_[op->operands[k]];
      ++use.count;
      use.user = op;
      if (!ir::only_shape(*op, k)) {
        ++use.readers;
        use.reader = op;
      }
      use.last = std::max(use.last, static_cast<int>(i));
    }
  }
}

/// From what has effects back to what it needs; results of constructs one by one.
void LiveUses::find_live(const std::vector<const Op*>& ops) {
  std::vector<const ir::Value*> work;
  const auto need = [&](const ir::Value* v) {
    if (live_values_.insert(v)) work.push_back(v);
  };
  const auto need_op = [&](const Op* op) {
    if (!live_.insert(op) || op->is(Opcode::loop_) || yields_to_construct(*op)) return;
    for (std::size_t i = 0; i < op->operands.size(); ++i)
      if (!only_type_matters(*op, i)) need(op->operands[i]);
  };
  for (const Op* op : ops)
    if (!removable(*op)) need_op(op);
  while (!work.empty()) {
    const ir::Value* v = work.back();
    work.pop_back();
    const Op* construct = v->def ? v->def : v->block->parent;
    if (v->def) need_op(v->def);
    if (!construct) continue;
    if (construct->is(Opcode::loop_)) {
      need(construct->operands[v->index]);
      need(construct->blocks[1]->yields()[v->index]);
    } else if (construct->is(Opcode::branch_)) {
      for (ir::Block* b : construct->blocks) need(b->yields()[v->index]);
    }
  }
}

bool LiveUses::live_state(const Op* loop, std::size_t i) const {
  return live_values_.contains(loop->results[i]) || live_values_.contains(loop->blocks[0]->params[i]) ||
         live_values_.contains(loop->blocks[1]->params[i]);
}

bool LiveUses::live_operand(const Op* op, std::size_t i) const {
  if (only_type_matters(*op, i)) return false;
  if (op->is(Opcode::loop_)) return live_state(op, i);
  if (!yields_to_construct(*op)) return true;
  const Op* construct = op->parent->parent;
  return construct->is(Opcode::loop_) ? live_state(construct, i)
                                      : live_values_.contains(construct->results[i]);
}

bool LiveUses::elements_matter(const ir::Value* tensor) const {
  const Use* use = uses_.find(tensor);
  return use && use->readers > 0;
}

int LiveUses::count(const ir::Value* value) const {
  const Use* use = uses_.find(value);
  return use ? use->count : 0;
}

const Op* LiveUses::user(const ir::Value* value) const {
  const Use* use = uses_.find(value);
  return use ? use->user : nullptr;
}

const Op* LiveUses::only_reader(const ir::Value* tensor) const {
  const Use* use = uses_.find(tensor);
  return use && use->readers == 1 ? use->reader : nullptr;
}

bool LiveUses::cell_is_final(const Op* ref_get) const {
  const int read = reads_.at(ref_get);
  const auto writes = cell_writes_.find(ref_get->operands[0]);
  if (writes != cell_writes_.end() && writes->second.last > read) return false;
  const Use* use = uses_.find(ref_get->result());
  const auto call = std::upper_bound(calls_.begin(), calls_.end(), read);
  return !use || call == calls_.end() || *call > use->last;
}

}  // namespace lantern::passes
