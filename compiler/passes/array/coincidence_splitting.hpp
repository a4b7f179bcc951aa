// Index set splitting at the iteration in which a loop meets an element that all its iterations access.
//
// The update of one element by itself and a fixed one, as in shortest paths, in elimination and in sweeps over a row:
//
//   for (j = 0; j < n; ++j) a[i * n + j] = min(a[i * n + j], a[i * n + k] + a[k * n + j]);
//
// The element a[i * n + k] changes in iteration k alone. Before and after it the element is loop-invariant, its adjoint a
// sum over the iterations, and the iterations are independent:
//
//   for (j = 0; j < k; ++j) ...        a[k] ...        for (j = k + 1; j < n; ++j) ...
//
// A loop with a tape is split in the same way where a comparison asks for one iteration: if (j != i) s += a[i * n + j] * x[j].
//
// Requires: an innermost loop that counts up or down, no other dependence between its iterations, and an iteration k that
// certainly is in its range. Ensures: the same iterations in the same order. A loop that pops what another one pushes
// is split where that one is, and each part has tapes of its own. (Griebl, Feautrier and Lengauer, "Index set splitting",
// International Journal of Parallel Programming 28, 2000.)
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Whether a loop has been split.
bool split_at_coincidences(ir::Module& module);

}  // namespace lantern::passes
