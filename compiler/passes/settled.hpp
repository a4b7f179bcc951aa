// Elements that a loop reads of what it writes, and does not write again.
//
//   for i: a[i] = f(a[i - 1])            the a[i - 1] of every trip is that of the final a
//
// A recurrence, a Cholesky factor, a triangular solve, a table of dynamic programming: the backward part
// finds what a trip has read in the tensor that the loop leaves behind, and nothing is kept of the trips.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// For `get`, in direct style, of a tensor that is state of a loop around it: the result of the outermost
/// such loop, where every write after the tensor at hand is seen to go to another element; else null. Indices
/// are compared as those of loops that count up, and by their bounds.
ir::Value* settled(const ir::Op& get);

}  // namespace lantern::passes
