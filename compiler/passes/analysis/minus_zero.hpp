// Adjoints to which nothing has flowed are -0: what asks a number for that.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Recognises the test `v != 0 or 0 < copysign(1, v)` by its two operands x and y. The test is true for every number but -0.
/// Returns v, or null where x and y are no such test. is_number(w, c): whether w is the constant c, in each element or lane.
template <class IsNumber>
ir::Value* told_from_minus_zero(const ir::Value* x, const ir::Value* y, const IsNumber& is_number) {
  using ir::Opcode;
  const ir::Op *const differs = x->def, *const less = y->def;
  if (!differs || !less || !differs->is(Opcode::ne_) || !less->is(Opcode::lt_)) return nullptr;
  ir::Value* const v = differs->operands[0];
  const ir::Op* const sign = less->operands[1]->def;
  const bool told = sign && sign->is(Opcode::copysign_) && sign->operands[1] == v && is_number(sign->operands[0], 1.0) &&
                    is_number(differs->operands[1], 0.0) && is_number(less->operands[0], 0.0);
  return told ? v : nullptr;
}

}  // namespace lantern::passes
