// Retiming of loops whose state first has something added to it.
#include "lantern/compiler/passes/array/retiming.hpp"

#include <algorithm>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::passes {

namespace {

class Retiming {
 public:
  Retiming(ir::Module& module, Op* loop) : module_(module), loop_(loop), uses_(loop) {}

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
    ir::replace_uses(loop_->parent, loop_->results[i], last);

    loop_->operands[i] = plus(ir::Builder::before(loop_), loop_->operands[i], more, sum->loc);
    ir::Builder end = ir::Builder::before(body->ops.back(), next->def->loc);
    std::vector<Value*> factors = next->def->operands;
    std::ranges::replace(factors, sum->result(), state);
    body->yields()[i] = plus(end, end.emit(Opcode::mul_, factors), more, sum->loc);
    for (const auto& use : uses_.of(sum->result())) use.op->operands[use.operand] = state;
    std::erase(body->ops, sum);
    return true;
  }

 private:
  bool outside(const Value* v) const {
    return constant(v) || std::ranges::none_of(loop_->blocks, [&](const Block* b) { return made_in(v, b); });
  }

  static Value* plus(ir::Builder b, Value* v, Value* more, const ir::Location& loc) {
    b.loc = {};
    if (constant(v) && constant(more) && v->type.kind() == ir::Kind::f64)
      return b.number(v->def->number + more->def->number, v->type);
    if (constant(more)) more = b.number(more->def->number, more->type);
    b.loc = loc;
    return b.add({v, more});
  }

  ir::Module& module_;
  Op* loop_;
  Uses uses_;
};

}  // namespace

void retiming(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    if (f->cps) continue;
    for (Op* loop : loops_in(*f))
      for (std::size_t i = 0, n = loop->operands.size(); i < n;) i += Retiming(module, loop).run(i) ? n : 1;
  }
}

}  // namespace lantern::passes
