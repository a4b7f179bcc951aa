// gather: a loop whose trips add to neighbouring elements becomes one in which each element takes its sum.
//
// The adjoint of a stencil scatters: the backward part of b[i] = f(a[i - 1], a[i], a[i + 1]) adds to three
// elements of one array in every trip. Seen from an element, three trips add to it, and their sum is stored
// once, without zeros to begin with:
//
//   t = zeros; for (i = lo; i < hi; ++i) { t[i - 1] += x(i); t[i] += y(i); t[i + 1] += z(i); }
//   becomes
//   for (j = lo + 1; j < hi - 1; ++j) t[j] = x(j + 1) + y(j) + z(j - 1);
//
// and the elements at both ends, to which only some of the trips add, one by one. (The same for adjoints of
// stencils: Hückelheim, Kukreja, Narayanan, Luporini, Gorman and Hovland, "Automatic differentiation for
// adjoint stencil loops", ICPP 2019.) Too few trips for that are made one by one as they stood.
//
// What trips add may need the loop's state as it was before the loop, and what does not change; what beside
// each other trips share is computed once. Where that is more work than before, loops stay as they are.
//
// Where the sum of all that, and of an array of which the loop has zeroed an element in every trip, is what
// is asked for, as after v.set(i, ...), it is stored at once: t[i] of the elements that were not zeroed.
//
// Of loops over rows and columns the outer ones go through the rows in the same way (gather_rows.hpp).
//
// Sums are reassociated, as accumulation into adjoints may be.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void gather(ir::Module& module);

}  // namespace lantern::passes
