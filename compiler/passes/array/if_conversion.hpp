// if_conversion: if-conversion of branches that add to elements of an adjoint. All additions are made, those of the side
// that does not run with zero.
//
//   if (c) { d[i] += x; d[i - 1] -= x }     becomes     d[i] += c ? x : 0;  d[i - 1] += c ? -x : 0;
//   else   { d[i + 1] += x; d[i] -= x }                 d[i + 1] += c ? 0 : x;  d[i] += c ? 0 : -x;
//
// Then several updates of one element become one, and iterations add to the same neighbours whatever they decide.
// (If-conversion: Allen, Kennedy, Porterfield and Warren, "Conversion of control dependence to data dependence",
// POPL 1983.)
//
// What both sides read is read before the branch. Where additions are to neighbours that may not be there, whichever side
// runs, the nest gets a condition that asks for the elements at its corners, and a copy of itself behind it (loop
// versioning). Places follow each other in the inner loop: between two elements that are there all are.
//
// Requires: independent iterations; sides that compute, and read what the other side reads, too. Ensures: the same sums.
// Costs the code of a nest once more where it gets a condition.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void if_conversion(ir::Module& module);

}  // namespace lantern::passes
