// array_contraction: an array of which each iteration of a loop uses its own elements, and nothing else any,
// becomes numbers of the iteration.
//
// The adjoint of an array between two loops begins as zeros; once the loops over it are one, an iteration adds to
// its element, reads it, and that is all it was for:
//
//   t = fill(0, n); for (i = 0; i < n; ++i) { t = add_at(t, i, x); y = get(t, i); t = set(t, i, 0); ... y ...
//   } becomes                                   { ... x ... }
//
// Scalar replacement, for elements of arrays. It needs a fill whose size is the number of iterations, so that
// every index is within it; other indices beside the iteration's are constants. Elements in which several iterations,
// or what follows the loop, are interested stay where they are.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void array_contraction(ir::Module& module);

}  // namespace lantern::passes
