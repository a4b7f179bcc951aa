// The iterations of parallel loops are shared out to threads.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Gives the outermost parallel loops a function that runs a range of their iterations:
///
///   for (i = lo; i < hi; ++i) BODY     becomes     if (there is enough to do) {
///                                                    part(lo, m, ...), part(m, hi, ...) at once, added up
///                                                  } else {
///                                                    for (i = lo; i < hi; ++i) BODY
///                                                  }
///
/// What the loop adds to, numbers and tensors, each range adds to zeros of its own, the first to what there
/// was before the loop; the sums are then added in order, so that the result depends on the number of threads
/// but on nothing else. Largest, smallest, all and any start from what there was before the loop in each
/// range, which counts once however often it is taken. Tensors of which every iteration reads and writes elements
/// of its own are shared.
///
/// A loop is left as it is where it is known to be short, and inside one that does not fork but runs in
/// lanes, as loops that keep values for a backward pass are. What runs in a range does not fork again.
/// Remarks say of each loop what became of it and why.
///
/// Before vectorise, which then looks at the ranges: `vector_lanes` is what it will be given. Where it will
/// run iterations in lanes, ranges begin where a vector does, and as many iterations as a vector has lanes stay
/// together. `threads`: from 2 to ir::largest_team.
/// `reassociate`: as lanes take it.
void parallelise(ir::Module& module, int threads, int vector_lanes = 0, bool reassociate = true);

}  // namespace lantern::passes
