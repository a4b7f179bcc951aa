// loop_interchange: of two loops around sums, the one that an element's sum goes through becomes the inner
// one, where what is read then lies side by side.
//
//   for k:  for j:  c[j] += x[k] * a[j, k]       becomes   for j:  for k:  c[j] += x[k] * a[j, k]
//
// a[j, k], which leapt from row to row, goes along a row now, and c[j] is a number for a whole inner loop
// (register_promotion). A sum over an inner loop stays where it is: vectorise has a choice of both loops for
// it.
//
// (Loop interchange: Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, 5.2. A loop
// whose iterations may come in any order may always be moved inwards.)
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// In all functions in direct style. Each element still adds up in the order of the program.
void loop_interchange(ir::Module& module);

}  // namespace lantern::passes
