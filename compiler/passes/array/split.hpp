// split: a loop whose trips add to neighbouring elements becomes one loop for each neighbour.
//
// The adjoint of a stencil, b[i] = f(a[i - 1], a[i], a[i + 1]), adds to three elements of one array in every
// trip, the same ones as the trips beside it: what was just stored is loaded again, in vectors even at another
// offset, and each trip waits for the one before. Apart, every loop goes through its elements once, from end
// to end:
//
//   for (i = 1; i < n - 1; ++i) { t[i - 1] += x; t[i] += y; t[i + 1] += z; }
//   becomes   for (...) t[i - 1] += x;   for (...) t[i + 1] += z;   for (...) t[i] += y;
//
// What they need is computed in each of them, so it must be little, and nothing that the loop hands from trip
// to trip. What is made by a function of the mathematical library, or popped from a tape, is left in an array
// by the loop, and the loops for the neighbours, which then follow it, read it there. Sums are reassociated, as
// accumulation into adjoints may be.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void split(ir::Module& module);

}  // namespace lantern::passes
