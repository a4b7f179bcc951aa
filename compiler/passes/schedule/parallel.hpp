// Loops whose iterations may run in any order become parallel.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Says of each loop whose iterations depend on none another how they come together in its state (ir/combine.hpp):
///
///   y, s = loop n, y0, s0 do (i, y, s) {          y, s = parallel n, y0, s0 do (i index, y element, s sum) {
///     v = get x, i                                  v = get x, i
///     y1 = set y, i, v                    becomes   y1 = set y, i, v
///     s1 = add s, v                                 s1 = add s, v
///     yield i + 1, y1, s1 }                         yield i + 1, y1, s1 }
///
/// All that works on several iterations at once asks the operation: threads, lanes, and the kernels of a GPU. A
/// loop stays as it is where an iteration needs something else of the iteration before, and where it does what is to be
/// done in order or by one thread: printing, a tape that other code uses, cells, functions that call
/// themselves. Remarks say which it is.
///
/// `reassociate`: without it a loop that sums, but for adjoints, stays as it is: its sum would change with
/// the order.
void parallel(ir::Module& module, bool reassociate = true);

}  // namespace lantern::passes
