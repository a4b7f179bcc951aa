// node_splitting: node splitting: where a loop reads an element that only a later iteration overwrites, it reads the
// tensor as it was before the loop.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// FOR(0, n, [&](i) { u = u.set(i, f(u[i], u[i + 1])); }) finds every element that it reads as it was before
/// the loop, whichever iteration asks:
///
///   loop(u = s) { u[i] = f(u[i], u[i + 1]) }      becomes      loop(u = s) { u[i] = f(s[i], s[i + 1]) }
///
/// Nothing is left that one iteration needs of another (an anti-dependence is none of values): the iterations may run
/// in any order, in lanes and threads, and the derivative is that of the body. (Node splitting: Kuck, Kuhn,
/// Padua, Leasure and Wolfe, "Dependence graphs and compiler optimizations", POPL 1981; Allen and Kennedy,
/// Optimizing Compilers for Modern Architectures, 2001, 5.5.)
///
/// Both tensors are there while the loop runs, so it is done where that costs no more than the loop: it
/// writes a good part of all elements. Other elements are only read by the iterations that write them. Done in a
/// loop and those inside it.
void node_splitting(ir::Op* loop);

}  // namespace lantern::passes
