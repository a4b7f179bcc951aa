// Loop coalescing: two indices that are adjacent and in the same order in every access become one index over both. Their
// elements lie in memory as one row. (Polychronopoulos, "Loop coalescing: a compiler transformation for parallel machines",
// 1987.)
//
//   for n, c, h, w: r[n,c,h,w] = x[n,c,h,w] * s[c]    becomes    for n, c, i: r[n,c,i] = x[n,c,i] * s[c]
//
// Rows become long, whatever the pictures' widths are, and vectors are full.
#pragma once

#include "lantern/compiler/passes/array/lower_nest.hpp"

namespace lantern::passes {

/// Merges what can be in a nest, whose tensors become views. For each member a tensor of the shape that its result is
/// to be given behind the nest; null where the result has it, or is a number. `rows`: the outermost index stays as it is,
/// so that loops over the same rows still are.
std::vector<Value*> merge_indices(ir::Builder& b, LoweredNest& nest, bool rows = false);

}  // namespace lantern::passes
