// reads_first: elements of a tensor are read before the tensor is changed.
//
//   b = set(a, i, x); y = get(a, j)    becomes    y = get(a, j); b = set(a, i, x)
//
// A tensor that is still read after it has been changed has to be copied, as has its adjoint.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void reads_first(ir::Module& module);
/// In a block and those inside it.
void reads_first(ir::Block* block);

}  // namespace lantern::passes
