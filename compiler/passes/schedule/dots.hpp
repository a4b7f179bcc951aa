// dots: an inner loop that sums a product over the lanes in each trip does so for as many trips at once as a
// register has lanes.
//
//   for j: a[j] += lane_sum(x[j] * w)      for j by 4: a[j..j+3] += lane_dots(x[j], w, ..., x[j+3], w)
//
// Four sums of four lanes together are three additions of registers where each alone is two with as many
// moves between lanes, and the neighbours they are added to are one register. The sums are as they were but
// for their order. Innermost loops that do nothing but add to elements side by side, none of which they read.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// `vector_lanes`: how many numbers of double precision a register holds.
void dots(ir::Module& module, int vector_lanes);

}  // namespace lantern::passes
