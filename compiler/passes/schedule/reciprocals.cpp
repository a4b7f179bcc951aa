// Block by block: quotients and reciprocals of one divisor.
#include "lantern/compiler/passes/schedule/reciprocals.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/uses.hpp"

namespace lantern::passes {

namespace {

bool divides_floats(const Op& op) {
  return op.is(Opcode::div_) && op.result()->type.is_float_element() && !op.result()->type.is_tensor();
}

/// A number, or the one in all lanes.
const Op* number_of(const Value* v) {
  return constant(v->def && v->def->is(Opcode::lane_splat_) ? v->def->operands[0] : v);
}
bool is_reciprocal(const Op& op) {
  const Op* const one = divides_floats(op) ? number_of(op.operands[0]) : nullptr;
  return one && one->number == 1;
}

/// True where all that asks for a value, or for its negative, is a product with a factor.
bool only_meets(const Value* v, const Value* factor, const Uses& uses) {
  return std::ranges::all_of(uses.of(v), [&](const ir::Use& use) {
    if (use.op->is(Opcode::neg_)) return only_meets(use.op->result(), factor, uses);
    return use.op->is(Opcode::mul_) && use.op->operands[1 - use.operand] == factor && v != factor;
  });
}

/// Puts an operation, and the constants that it is made of, before another one in its block.
void hoist_before(Op* op, Op* other) {
  const auto& ops = other->parent->ops;
  if (op->parent != other->parent || std::ranges::find(ops, op) < std::ranges::find(ops, other)) return;
  for (const Value* v : op->operands)
    if (v->def && v->def->is(Opcode::constant_, Opcode::lane_splat_)) hoist_before(v->def, other);
  std::erase(other->parent->ops, op);
  ir::Builder::before(other).take(op);
}

void in_block(Block* block, const Uses& uses) {
  std::vector<Op*> quotients;
  for (Op* op : block->ops)
    if (divides_floats(*op)) quotients.push_back(op);
  for (Op* reciprocal : quotients) {
    if (!is_reciprocal(*reciprocal)) continue;
    for (Op* op : quotients) {
      if (op == reciprocal || !op->is(Opcode::div_) || op->operands[1] != reciprocal->operands[1] ||
          !only_meets(op->result(), reciprocal->result(), uses))
        continue;
      hoist_before(reciprocal, op);
      op->code = Opcode::mul_;
      op->operands[1] = reciprocal->result();
    }
  }
}

}  // namespace

void reciprocals(ir::Module& module) {
  for (ir::Function* f : module.functions()) {
    std::optional<Uses> uses;
    for (Block* block : ir::blocks_below(f->body)) {
      if (std::ranges::none_of(block->ops, [](const Op* op) { return is_reciprocal(*op); })) continue;
      if (!uses) uses.emplace(*f);
      in_block(block, *uses);
    }
  }
}

}  // namespace lantern::passes
