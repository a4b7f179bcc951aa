// circular_buffers: the rows of a circular buffer become arrays of their own, which change places.
#pragma once

#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Array splitting for storage that a modulus folds.
///
///   for t: for i: u[(t + 1) % 2 * n + i] = f(u[t % 2 * n + i])
///   becomes
///   a, b = rows of u;  for t: { for i: b[i] = f(a[i]);  swap(a, b) };  rows of u = a, b
///
/// The same for u(t % 3, i), with more rows, and with more dimensions. Nothing tells dependence tests that
/// two rows differ, as the numbers of rows are remainders; of two arrays that is plain, in the derivative as
/// well. (It undoes storage folding: Lefebvre and Feautrier, "Automatic storage management for parallel
/// programs", Parallel Computing 24, 1998.)
///
/// Requires a loop that counts up, and in it accesses to rows (t + c) mod K alone, t being its counter, each
/// to an element within its row. What is not known of that before the program runs is asked before the loop;
/// then the loop is there twice. Costs a copy of the rows before the loop and one after it, so it asks for
/// 4 iterations for each row, and as many accesses in an iteration as a row has elements. Done in a loop and
/// those inside it. Returns what represents the outermost loop's results, in their order before, and the copies of
/// that loop for when something asked is not so.
struct SplitBuffers {
  std::vector<ir::Value*> results;
  std::vector<ir::Op*> alternatives;
};
SplitBuffers circular_buffers(ir::Module& module, ir::Op* loop);

}  // namespace lantern::passes
