// scalar_replacement: small tensors of a known shape become numbers.
//
//   m = matmul(a, b) : f64[2,2]          m00 = a00 * b00 + a01 * b10
//   x = get m, 0, 1                      ...
//                                        x = m01
//
// A rotation, a covariance, a colour: what fits registers needs no memory, no loops and no calls, and what is
// made of constants is folded. A tensor, its adjoint's cell, and whatever state, parameter or tape may hold
// the same, are numbers together, or stay in memory together where one of them is accessed by an index that
// is not known or is an operand of something that needs it in memory. A row of a tensor that stays there is
// read and added to element by element:
//
//   r = take x, i : f64[3]               r0 = get x, i, 0, ...
//   z = add_take y, i, r                 z0 = add_at y, i, 0, r0, ...
//
// so that the iterations of a loop over rows run in lanes. (Scalar replacement of aggregates:
// Muchnick, Advanced Compiler Design and Implementation, 1997, 12.2.)
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void scalar_replacement(ir::Module& module);

}  // namespace lantern::passes
