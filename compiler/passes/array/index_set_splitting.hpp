// index_set_splitting: a loop whose iterations ask where they are becomes one loop for each answer.
//
// Where the boundary of a grid is handled in the loop over it, each iteration decides by its number which of two
// programs it is: it cannot run in lanes, nor can neighbours be gathered. Before and after the threshold the
// answer is known (index set splitting: Griebl, Feautrier and Lengauer, "Index set splitting", International
// Journal of Parallel Programming 28, 2000):
//
//   for (i = 0; i < n; ++i) a[i] = 0 < i ? x(i) : y(i);
//   becomes   if (0 < n) a[0] = y(0);   for (i = 1; i < n; ++i) a[i] = x(i);
//
// The same iterations in the same order. Only loops that count up, whose conditions choose between more than
// numbers that can be computed either way, and only short ones: each part is the whole body, less what is
// known.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void index_set_splitting(ir::Module& module);

/// The same before derivatives are made, of the innermost loops inside one: of those whose iterations read
/// what others write. Each part is differentiated by itself, so that no branch hides what the backward part
/// can compute again, and both parts run in lanes.
void index_set_splitting(ir::Module& module, ir::Op* around);

}  // namespace lantern::passes
