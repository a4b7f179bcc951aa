// pack: elements that inner loops walk through by leaps lie side by side in a copy.
//
//   for n: for i: for j < i: s += a[j*(2d-j-1)/2 + i-j-1] * x[j]
//
//   for i: for j < i: p[i, j] = a[j*(2d-j-1)/2 + i-j-1]          once, before the loop over n
//   for n: for i: for j < i: s += p[i, j] * x[j]
//
// Each leap costs a line of the cache, and vectors take neighbours only. What a loop adds to such elements goes
// to a tensor of zeros of that order, which is added to them after the loop. (Packing of operands: Goto and van
// de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008; data layout
// transformation: Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, 9.3.)
//
// A leap is an index that is not linear in the innermost loop's, as in packed triangles. The copy has the inner
// loops' trips as its dimensions, two or three; a loop may end at the index of one around it. Copies are made
// for loops that run in wide vectors: one of their trips reads an element for many of the program's. Those for
// what is left read where they did.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void pack(ir::Module& module);

}  // namespace lantern::passes
