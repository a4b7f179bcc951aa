// periodic_variables: integers that a loop hands on in turn follow from the number of the iteration.
#pragma once

#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Induction variable substitution for periodic variables.
///
///   now = 0, next = n;  for t from 0: { f(now, next);  swap(now, next) }
///   becomes
///   for t from 0: f(t % 2 * n, (t + 1) % 2 * n)
///
/// The same for three that rotate, `now = 1 - now`, `now = now ^ 1` and `now = (now + 1) % 3`. Then the loop
/// hands on no integers, its derivative saves none, and circular_buffers knows the rows that they choose.
/// (Wolfe, "Beyond induction variables", PLDI 1992.)
///
/// Requires a loop that counts up from a constant, and values that lie at equal distances. Done in a loop and
/// those inside it. Returns what represents the outermost loop's results, in their order before.
std::vector<ir::Value*> periodic_variables(ir::Op* loop);

}  // namespace lantern::passes
