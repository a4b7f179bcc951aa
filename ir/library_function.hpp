// Which operations take a call of the mathematical library.
#pragma once

#include "lantern/ir/op.hpp"

namespace lantern::ir {

/// The elementary and special functions of the table, from exp to polygamma: each takes as long as ten
/// additions or more. sqrt, abs, floor, min and max are instructions.
constexpr bool is_library_function(Opcode op) { return op >= Opcode::exp_ && op <= Opcode::polygamma_; }

}  // namespace lantern::ir
