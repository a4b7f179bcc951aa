// Independent kernels of different sizes become one launch.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Horizontal fusion for a GPU: parallel loops that do not need each other become one loop over the
/// iterations of all of them, one after the other, whatever their numbers are:
///
///   a = parallel i in m { row i of a }             a, b = parallel r in m + n / 1024 {
///   b = parallel j in n { b[j] = ... }                if r < m { row r of a }
///                                        becomes      else {
///                                                       parallel j in 1024 (r - m) .. min(n, 1024 (r - m) +
///                                                       1024) {
///                                                         b[j] = ... } } }
///
/// A block of threads takes an iteration, so that a range of blocks, known from the sizes, works on each of
/// the loops. A loop whose iterations hold loops for a block, a row each, keeps them; of one whose iterations
/// are for a thread each a block takes 1024. Nests over all elements of tensors of one shape go through these
/// elements as they lie in memory. (Li et al., "Automatic horizontal fusion for GPU kernels", CGO 2022.)
///
/// A launch takes microseconds, however short the kernel is: the updates of all parameters are one. Long
/// kernels gain nothing, and lose nothing. Loops stay alone where they reduce, or add to what other
/// iterations add to; where elements of a block may fail, since the first of them is to tell; and where a
/// tensor would have to be copied. What the loops work on are states of one loop, so that the memory pass
/// knows that they run at once.
void horizontal_fusion(ir::Module& module);

}  // namespace lantern::passes
