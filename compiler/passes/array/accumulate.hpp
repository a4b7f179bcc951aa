// accumulate: a sum with what has been added to zeros is added up in place.
//
//   z = zeros_like x
//   s = add_einsum z, y, "[i+1]+=i"      becomes   r = add_einsum t, y, "[i+1]+=i"
//   r = add t, s
//
// The adjoints of parts of a tensor are such sums: of five neighbours in a stencil, each one was a tensor of
// zeros with a part in it. Now they are updates of one tensor, which share a loop (lower) whose additions are
// collected by element (scatter_to_gather). In the backward part alone, where shapes fit by construction.
// Part of `lower`.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Returns whether there was anything to do.
bool accumulate(ir::Module& module);

}  // namespace lantern::passes
