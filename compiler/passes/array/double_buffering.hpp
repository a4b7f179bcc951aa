// double_buffering: a loop whose iterations make one array of another and copy it back lets the two change
// places.
#pragma once

#include <utility>
#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Copy elimination for loop-carried arrays (double buffering).
///
///   w = v; loop { for (i = 1; i < n; ++i) w[i] = f(v, i);  for (i = 1; i < n; ++i) v[i] = w[i]; }
///   becomes
///   w = v; loop { for (i = 1; i < n; ++i) w[i] = f(v, i);  swap(v, w); }
///
/// Requires two arrays that start equal, and two nests that write the same elements in all iterations, the second one copies
/// of what the first one wrote. Then both arrays are equal whenever an iteration begins: reads of w before it is
/// written are reads of v. Where w starts as v in each iteration, w is what v becomes. Ensures the same
/// values; before derivatives, the adjoint of the copy is gone, too. Done in a loop and those inside it.
/// Returns the states of the outermost loop, first, that end equal to the others, second.
std::vector<std::pair<std::size_t, std::size_t>> double_buffering(ir::Op* loop);

}  // namespace lantern::passes
