// Loops that count down count up.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Loop reversal for a GPU: the backward part of a derivative goes through iterations from the last to the first. Where
/// they may run in any order the loop counts up, as loops that become kernels do:
///
///   for (n; 0 < n; n = n - 1) t[at[n - 1]] += x[n - 1]     becomes     for (i = 0; i < n; i = i + 1) t[at[i]] += x[i]
///
/// (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, 5.5.) `reassociate`: numbers that the program
/// adds up may be added in another order; without it, loops with such sums stay.
void loop_reversal(ir::Module& module, bool reassociate);

}  // namespace lantern::passes
