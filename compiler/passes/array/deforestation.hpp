// deforestation: what an iteration makes for a row of its own is made in that row; an array with one element
// replaced that is only read is not made.
//
// A Jacobian takes one pass for each direction, and each pass an array for the direction and one for its
// result:
//
//   for k:  e = set(zeros, k, 1)                       for k:
//           for i:  y = set(y, i, ... get(e, i) ...)     for i:  J = set(J, k, i, ... (i == k ? 1 : 0) ...)
//           J = add_take(J, k, y)
//
// After it an iteration has no arrays of its own, so that iterations, here the directions, can run in the lanes of
// vectors, and what they have in common is computed once for all lanes. (Deforestation: Wadler,
// "Deforestation: transforming programs to eliminate trees", ESOP 1988; for arrays built by updates.)
//
// Rows: in a loop that counts by ones and starts from a matrix of zeros, whose only use in an iteration is add_take
// of the row that belongs to the iteration, of an array that a loop before it has filled from zeros, or from
// nothing, by set and add_at. Arrays with one element replaced: a zeros_like or fill as it was otherwise, the
// place of which is in range.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void deforestation(ir::Module& module);

}  // namespace lantern::passes
