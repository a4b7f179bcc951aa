// full_unrolling: full unrolling of inner loops with a small constant trip count.
//
//   for j: for b < 3: t[j + b] += f[b] * d[j]
//   becomes
//   for j: t[j] += f[0] * d[j]; t[j + 1] += f[1] * d[j]; t[j + 2] += f[2] * d[j]
//
// Then the loop around is an innermost one: its iterations add to neighbours, its sums are numbers, and its lanes
// have everything in registers. (Full unrolling, or unroll and jam where the loop around runs in lanes: Allen
// and Kennedy, Optimizing Compilers for Modern Architectures, 2001, 8.4.) Done in loops, where the iterations
// together are little code. What they keep on a tape becomes values, if it is taken again in the same iteration of
// the loop around; loops that keep anything else stay.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void full_unrolling(ir::Module& module);

/// The same inside a loop before it is differentiated, of loops that carry numbers which are no sums:
///
///   for q < 3: m = max(m, a[j + q])     becomes     m = max(max(max(m, a[j]), a[j + 1]), a[j + 2])
///
/// The derivative of the loop would keep a number of each iteration; straight code has them all.
void unroll_recurrences(ir::Op* outermost);

}  // namespace lantern::passes
