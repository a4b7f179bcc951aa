// invariant_integers: loop-invariant code motion of integers: those that are the same in each iteration are computed before
// the loop.
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
