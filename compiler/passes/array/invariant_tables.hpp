// invariant_tables: loop-invariant code motion with expansion to an array: values of inner loops that do not depend on the
// outer loop are computed once, before it.
//
//   for n: for k: for i: ... exp(a[k, i]) ...        for k: for i: t[k, i] = exp(a[k, i])
//                                                    for n: for k: for i: ... t[k, i] ...
//
// Functions of the mathematical library move, with what their arguments are made of, where these depend on
// the inner loops' indices and on values from outside alone. (Loop-invariant code motion by expansion to an
// array: Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, 5.3.) The same values are
// formed. A table has the inner loops' iterations as its dimensions, at most three; no loop moves out of a bound
// on memory.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void invariant_tables(ir::Module& module);

}  // namespace lantern::passes
