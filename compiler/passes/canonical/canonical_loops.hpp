// canonical_loops: loops that count say so, as FOR does: up by ones, to a bound that is known before they
// start.
//
//   while (i < a.size() - 1) ...        n = a.size() - 1; while (i < n) ...
//   while (i <= n) ...                  m = n + 1; while (i < m) ...
//   while (i + 1 < n) ...               m = n - 1; while (i < m) ...
//   while (i > m) { ...; i = i - 1 }    n = i - m; t = 0; while (t < n) { i = first - t; ...; t = t + 1 }
//   while (i < m) { ...; i = i + 2 }    n = (m - i + 1) / 2; ...
//
// What a condition computes the same in each iteration is computed before the loop: it is evaluated at least once,
// where the loop starts, so nothing runs that would not have run, and what fails does so in the same place.
// (Loop-invariant code motion and induction variables: Aho, Lam, Sethi and Ullman, Compilers, 2nd
// edition, 9.5 and 9.1.7.) A loop up to the largest integer of all, which never ends, is not told from one
// that does not start.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Runs on programs as staged: on loops, and on continuations that become loops.
void canonical_loops(ir::Module& module);

/// Of a loop and those inside it. What a loop counts may become another piece of its state, the last one.
void canonical_loops(ir::Module& module, ir::Op* outermost);

}  // namespace lantern::passes
