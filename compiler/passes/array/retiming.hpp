// retiming: a sum that starts every iteration of a loop moves to the end of the iteration before it.
//
//   d = d0                              e = d0 + g
//   repeat { v = d + g; d = c * v }     repeat { d = c * e; e = c * e + g }
//
// This is what the adjoint of a value looks like that both the next iteration and something outside the loop use.
// The iterations wait for one another through a sum and a product on the left, through one fused multiply-add on
// the right. The same sums and products are formed, so that results are the same up to contraction. (A loop
// is shifted against itself: Leiserson and Saxe, "Retiming synchronous circuitry", Algorithmica 6, 1991.)
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void retiming(ir::Module& module);

}  // namespace lantern::passes
