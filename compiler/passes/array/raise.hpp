// raise: loops that add up products of matrices become one matrix product.
//
//   for i: for k: for j: c[i, j] += s * a[i, k] * b[k, j]        c = gemm(c, a, b, s, ...)
//
// whatever the order of the loops and whichever way the matrices lie in memory: what counts is that each of
// the three numbers is in two of the three indices, in equal steps. (Pattern-based raising to BLAS: Chelini
// et al., "Progressive raising in multi-level IR", CGO 2021.) In the backward part the adjoints of both
// factors are such products. What else the loops do stays where it is; the product comes before or after
// them, where no access between can tell.
//
// Which way is taken is decided when the program runs: the product where there is enough to do and every
// index is in range, else the loops as they stood, which also say what is wrong.
//
// Sums are reassociated.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void raise_products(ir::Module& module);

}  // namespace lantern::passes
