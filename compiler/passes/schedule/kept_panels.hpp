// Loop-invariant code motion of packing: the panels of a matrix that a loop multiplies by are packed once.
//
//   loop { c = add_einsum c, x, w, "ij+=ik,jk" }      becomes   kept = fill(undef, k * (n + 32) + 64), kept[0] = 0
//                                                               loop { c = gemm c, x, w, ..., kept }
//
// Requires: the second factor of the product is loop-invariant. Ensures: the same values; the routine packs the factor
//   when the first product needs it, and keeps the panels in the last operand, which it alone reads and writes. The
//   memory is set up before the outermost loop that the factor is invariant in.
// Cost: memory for one more copy of the factor. Source: Goto and van de Geijn, Anatomy of high-performance matrix
//   multiplication, 2008; packing ahead as in the BLAS extensions ?gemm_pack and ?gemm_compute.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void kept_panels(ir::Module& module);

}  // namespace lantern::passes
