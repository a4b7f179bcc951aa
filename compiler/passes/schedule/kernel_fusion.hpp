// Parallel loops over the same rows become one loop, and so one kernel.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Kernel fusion for a GPU: a parallel loop joins a later one over as many iterations that needs of it what the same
/// iteration has made, also where views lie between them, and where they differ in what they have inside:
///
///   m = parallel i in n { ... m[i] = max of row i }        m, y = parallel i in n {
///   v = reshape m, [n,1]                          becomes     ... m[i] = max of row i
///   y = parallel i in n { ... v[i,0] ... }                    ... m[i] ... }
///
/// Then the same for the loops inside. A block of threads that works on a row does one after the other, where each was
/// a kernel that waited for the whole of the one before; what lay between them and is of one iteration alone becomes
/// numbers (array_contraction). On a processor loops that differ so stay what they are: caches hold what
/// lies between them, and vectors want short bodies. (Jia et al., "Optimizing deep learning computation with automatic
/// generation of graph substitutions", SOSP 2019, have such substitutions for operations; here they are
/// about iterations, whatever the operations were.)
///
/// Nests become one nest where the later needs of the earlier the elements of its own iterations alone. Then loops over as
/// many iterations that have nothing to do with each other join, too, unless they are long, or one adds to what other
/// iterations add to and the other does not: a launch is saved (horizontal fusion).
///
/// All that an iteration does counts as one: where a kernel may fail in two places, the earlier iteration tells. Nothing that
/// may fail passes a check of the host, and no tensor is copied for it: where something between the loops updates what the
/// first reads, they stay.
///
/// `strangers`: also loops that have nothing to do with each other.
void kernel_fusion(ir::Module& module, bool strangers = true);

}  // namespace lantern::passes
