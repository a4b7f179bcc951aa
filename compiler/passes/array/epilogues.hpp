// Epilogue fusion: what is done with each element of a product's result is done while a cache holds the element.
//
//   y = add_einsum zeros, x, w                               y = add_einsum zeros, x, w
//   z = parallel c, i { z[c,i] = max(y[c,i] + b[c], 0) }     z = call[epilogue] @f_epilogue(0, C, 0, I, y, b)
//
// The call means what it says. It is also a function of a box of the result: rows from the first to below the second
// number, of each the elements from the third to below the fourth. The routine of a product before such a call
// makes the call in its place, for one box after the other as soon as the box is done (codegen/contraction_statements.cpp).
//
// Requires: a nest of loops reads the product's result at the element of its iteration only, nothing else reads the result, and
//   the nest makes one tensor of the same shape. Ensures: the same values; the nest works in the result's memory. Cost: a
//   function for each nest. Source: epilogues of the library CUTLASS; Chen et al., TVM, 2018, fuse them so.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void fuse_epilogues(ir::Module& module);

}  // namespace lantern::passes
