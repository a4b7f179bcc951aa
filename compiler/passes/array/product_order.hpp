// product_order: a product is made in the order of dimensions in which it is used.
//
//   z = zeros_like wt
//   g = add_einsum z, x, d, "ij+=ki,kj"
//   t = transpose g                          becomes   t = einsum d, x, "ki,kj->ij"
//
// The gradient of a weight that a layer transposes comes out transposed: read in rows it would cost a cache
// line an element. In which order a product's loops or routine write their result costs nothing, so the
// permutation goes into its notation. A product added to zeros of the same shape is the product alone; in
// the backward part, where shapes fit by construction. Part of `lower`.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Returns whether there was anything to do.
bool order_products(ir::Module& module);

}  // namespace lantern::passes
