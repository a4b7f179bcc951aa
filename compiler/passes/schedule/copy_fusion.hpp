// Copies and fills become part of the kernels that update them.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Copy fusion for a GPU: a nest of parallel loops that sets a box of elements of a tensor, which would be copied before
/// because its old elements are read as well, or which is filled with one value, goes through all elements instead. A
/// guard asks which of them are in the box; the others take the old element:
///
///   parallel i from 1 below n - 1            parallel i from 0 below n
///     t = set t, i, f(i)          becomes      t = set t, i, (1 <= i and i < n - 1 ? f(i) : old[i])
///   from a copy of old                       from uninitialised memory
///
/// The copy was a pass through memory and the fill a kernel of their own; and a nest that goes through all elements has
/// the iterations of those behind it, which kernel_fusion joins. (Index-set extension, the inverse of peeling: Allen and
/// Kennedy, Optimizing Compilers for Modern Architectures, 2001, 5.7.) The box must lie within the tensor for certain.
void copy_fusion(ir::Module& module);

/// A kernel whose iterations each work on a row of their own of a filled tensor fills the rows itself: the fill was a kernel
/// of its own. `kernel_fusion` has joined what works on the same rows.
void row_fills(ir::Module& module);

}  // namespace lantern::passes
