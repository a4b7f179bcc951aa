// predictive_commoning: an element that the iteration before has written is handed on as a number.
//
//   for i: y[i] = a[i] + c * y[i - 1]
//   becomes
//   last = y[first - 1]; for i: last = a[i] + c * last; y[i] = last
//
// So iterations of a recurrence do not wait until memory gives back what was written. The backward part of
// one adds to the element that its next iteration reads, or adds to as well: d[i - 1] += x; d[i] += y. Elements are
// written as before. (Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables", PLDI 1990.)
//
// Requires: what is written is computed of what is read, unless sums are added to both; the loop's iterations run in order,
// one at a time, and the element's index is that of the write in the iteration before; what else is written on the way
// lies elsewhere.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void predictive_commoning(ir::Module& module);

}  // namespace lantern::passes
