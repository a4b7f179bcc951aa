// loop_fusion: two loops over the same iterations become one where the second looks only at what the first does in
// the same iteration.
//
//   for i: a[i] = f(i)              for i: v = f(i); a[i] = v; b[i] = g(v)
//   for i: b[i] = g(a[i])
//
// What is then read is still available, and an array that nothing else asks for is never made. The classical
// conditions (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, 6.2.5): the same iterations,
// and every element that both touch belongs to one iteration. Loops whose iterations are independent are fused with
// their like alone, so that vectorise finds what it found before.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void loop_fusion(ir::Module& module);

}  // namespace lantern::passes
