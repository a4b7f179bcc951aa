// Adjoints that tell 0 from -0: passes/direct/flow.hpp.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// The attribute of a reciprocal that is asked for its sign alone, and so may be infinite.
inline constexpr std::int64_t sign_alone = 1;
inline bool is_asked_for_sign(const Op& op) {
  return op.is(Opcode::div_) && op.integer == sign_alone && op.result()->type.is_float_element();
}

/// The attribute of a ref_new whose cell begins as -0.
inline constexpr std::int64_t begins_as_minus_zero = 1;

}  // namespace lantern::ir
