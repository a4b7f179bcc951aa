// Rotation of loops whose state first has something added to it.
#include "lantern/compiler/passes/array/rotate.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::passes {

namespace {

class Rotation {
 public:
  Rotation(ir::Module& module, Op* loop) : module_(module), loop_(loop), uses_(loop) {}

  /// True where state `i` of the loop was rotated.
  bool run(std::size_t i) {
    Block* const body = loop_->blocks[1];
    Value* const state = body->params[i];
    if (!state->type.is_scalar() || state->type.is_vector() || !state->type.is_differentiable()) return false;
    const auto& uses = uses_.of(state);
    if (uses.size() != 1 || !uses_.of(loop_->blocks[0]->params[i]).empty()) return false;
    const auto [sum, operand] = uses.front();
    if (!sum->is(Opcode::add_) || sum->parent != body) return false;
    Value* const more = sum->operands[1 - operand];
    if (!outside(more)) return false;
    Value* const next = body->yields()[i];
    if (!next->def || !next->def->is(Opcode::mul_) || next->block != body) return false;

    // The state as it was, for whoever reads it after the loop.
    module_.add_param(loop_->blocks[0], state->type);
    module_.add_param(body, state->type);
    loop_->operands.push_back(loop_->operands[i]);
    body->yields().push_back(next);
    Value* const last = module_.add_result(loop_, state->type, loop_->results[i]->name);
    replace_after(loop_->results[i], last);

    const auto before = std::ranges::find(loop_->parent->ops, loop_);
    std::vector<Op*> ops;
    loop_->operands[i] = plus(loop_->operands[i], more, loop_->parent, sum->loc, ops);
    loop_->parent->ops.insert(before, ops.begin(), ops.end());
    ops.clear();
    Op* product = module_.new_op(Opcode::mul_, body);
    product->operands = next->def->operands;
    product->loc = next->def->loc;
    ops.push_back(product);
    body->yields()[i] = plus(module_.add_result(product, next->type), more, body, sum->loc, ops);
    body->ops.insert(body->ops.end() - 1, ops.begin(), ops.end());
    for (Op* op : ops) std::ranges::replace(op->operands, sum->result(), state);
    for (const auto& use : uses_.of(sum->result())) use.op->operands[use.operand] = state;
    std::erase(body->ops, sum);
    return true;
  }

 private:
  bool outside(const Value* v) const { return constant(v) || !inside(v->block); }
  bool inside(const Block* b) const {
    for (;;) {
      if (std::ranges::find(loop_->blocks, b) != loop_->blocks.end()) return true;
      if (!b->parent) return false;
      b = b->parent->parent;
    }
  }

  /// v + more, as operations of `block`.
  Value* plus(Value* v, Value* more, Block* block, const ir::Location& loc, std::vector<Op*>& ops) {
    if (constant(v) && constant(more) && v->type.kind() == ir::Kind::f64) {
      Op* sum = module_.new_op(Opcode::constant_, block);
      sum->number = v->def->number + more->def->number;
      ops.push_back(sum);
      return module_.add_result(sum, v->type);
    }
    if (constant(more)) {
      Op* copy = module_.new_op(Opcode::constant_, block);
      copy->number = more->def->number;
      ops.push_back(copy);
      more = module_.add_result(copy, more->type);
    }
    Op* op = module_.new_op(Opcode::add_, block);
    op->operands = {v, more};
    op->loc = loc;
    ops.push_back(op);
    return module_.add_result(op, v->type);
  }

  void replace_after(const Value* from, Value* to) {
    ir::walk(loop_->parent, [&](Op* op) {
      for (Value*& v : op->operands)
        if (v == from) v = to;
    });
  }

  ir::Module& module_;
  Op* loop_;
  BodyUses uses_;
};

}  // namespace

void rotate(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (f->cps) continue;
    for (Op* loop : loops_in(*f))
      for (std::size_t i = 0, n = loop->operands.size(); i < n;) i += Rotation(module, loop).run(i) ? n : 1;
  }
}

}  // namespace lantern::passes
