// invariant_integers: integers that a loop computes anew in every iteration, always the same, are computed before
// it (loop-invariant code motion).
//
//   for (j = 0; j < nx; ++j) v[i * nx + j] = ...    becomes    r = i * nx
//                                                              for (j = 0; j < nx; ++j) v[r + j] = ...
//
// Compilers of C do the same; here it lets indices be checked before the loop. Only integers are moved, and
// what cannot raise. The rank and the number of ranks are asked for before the loop if it has an iteration: no engine may be there.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void invariant_integers(ir::Module& module);

}  // namespace lantern::passes
