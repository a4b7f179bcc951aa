// dead_fills: dead store elimination of initial values. Where a loop sets every element of a tensor, it starts uninitialised.
//
// A loop that gives an array begins with one of zeros, say, and then sets every element: filling it first is
// work for nothing, and for results of many megabytes as much as computing them. Where it is plain that each
// element is set and none read before, the loop starts from a `fill` with `undef`, which only takes memory.
//
//   for (i = 0; i < n; ++i) a = set(a, i, v)          from  fill(0, n)      to  fill(undef, n)
//   for (i = 0; i < n; ++i) a = set(a, i, 0, v); a = set(a, i, 1, w)
//                                                     from  fill(0, n, 2)   to  fill(undef, n, 2)
//
//   for (i = n; 0 < i; --i) a = add_at(a, i - 1, v)   from  zeros  to  set(a, i - 1, v)  from  fill(undef, n)
//
// Also loops in loops. Indices are those of the loops around the update, each of which runs over a whole
// dimension, and, in one dimension, constants and ranges that together are all of it: the parts of a
// concatenation, also where their sizes are known when the program runs.
//
//   for (i = 0; i < 2; ++i) a = set(a, i, v); for (j = 0; j < 3; ++j) a = set(a, 2 + j, w)    both in a loop over rows
//
// The loops of the parts may lie one after the other, each with the tensor from the one before, and read what is written
// once all of it is.
//
// Loops that start from one and the same filled tensor get one each: t = fill(0, n) twice, not a copy of t.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void dead_fills(ir::Module& module);

}  // namespace lantern::passes
