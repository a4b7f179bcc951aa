// sparse_adjoints: an iteration whose adjoint is zero is skipped.
//
// Where a program takes the smallest or largest of several numbers, an adjoint flows to one of them, and zeros flow to the
// others. Behind a table of such choices (dynamic programming) most adjoints are zero: only those on the path that
// was chosen are not. An iteration that adds multiples of one adjoint to others does nothing if that adjoint is zero.
//
//   a = get d, [i]                             a = get d, [i]
//   d' = add_at d, [j], (c ? a : 0)            p = x * a
//   d" = add_at d', [k], (c ? 0 : a)           if (a != 0 or p != 0) { d', d", s' as before }
//   s' = s + x * a                             else { d, s }
//
// In lanes a block of iterations is skipped whose adjoints are all zero, where the adjoints come from zeros to which the
// program adds a few elements: a ne 0 in each lane, lane_any of it.
//
// Requires: a sequential loop (what runs on threads has no use for it), sums of adjoints, a choice on the way
// of one of them. Ensures: the same values; a product with a factor that may be infinite or NaN is asked, too. The sign
// of a zero may differ. Cost: a branch that is well predicted where adjoints are dense or sparse throughout.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void sparse_adjoints(ir::Module& module);

}  // namespace lantern::passes
