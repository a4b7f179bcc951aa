// Reaching definitions of elements: which version of a tensor a loop reads that it also writes, the first or the last.
//
//   for i: a[i] = f(a[i - 1])            the a[i - 1] of every iteration is that of the final a
//   for i: a[i] = f(a[i + 1])            the a[i + 1] is that of the a before the loop
//
// A recurrence, a Cholesky factor, a triangular solve, a table of dynamic programming: the backward part
// finds what an iteration has read in the tensor that the loop leaves behind, or has found, and nothing is kept of
// the iterations.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// For `get`, in direct style, of a tensor that is state of a loop around it: the result of the outermost
/// such loop, where every write after the available tensor is seen to go to another element; what that loop
/// starts with, where every write before does; else null. Level by level of the loops, by the dependence
/// tests of analysis/index_form.hpp: loops that count, and indices that are sums of products.
ir::Value* reaching_definition(const ir::Op& get);

}  // namespace lantern::passes
