// partial_copies: a loop that replaces a box of a tensor starts from a copy of what lies outside that box.
//
// A loop over time steps hands tensors on from step to step. Where an earlier one is still needed, on a tape or as a
// neighbour, the next one is made in new memory, which starts as a copy:
//
//   loop over t, with u and w              loop over t, with u and w
//     w' = copy w                            w' = copy of w without the elements i to be set
//     for (i = 1; i < n - 1; ++i)    to      for (i = 1; i < n - 1; ++i)
//       w' = set(w', i, f(u, i))               w' = set(w', i, f(u, i))
//     hand on w', u                          hand on w', u
//
// A nest of loops writes a box: one element in each iteration, at an index that is a sum of multiples of its counters, the
// same box in each step. Rows of the box are adjacent elements. Nothing reads the box before it is written. The `copy` has the
// box as operands. The pass inplace leaves it out where the old tensor gives its memory away.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void partial_copies(ir::Module& module);

}  // namespace lantern::passes
