// contify: continuations that are known where they are called become ordinary code (eta and beta).
//
//   fun k2(y, dy) { jump k(y, dy) }    becomes k: otherwise it hides that k is called last
//   a `fun` called by one jump         moves there, backward part included: A; jump k(x); P becomes A; K(x); P
//
// Nothing happens to functions in direct style.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void contify(ir::Module& module);

/// Returns whether anything changed.
bool contify(ir::Function& function);

}  // namespace lantern::passes
