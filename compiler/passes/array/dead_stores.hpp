// dead_stores: elements that nobody reads again are not written.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Drops writes of elements that nobody reads afterwards, in loops after which nobody asks for the tensor:
/// the adjoint of what a trip overwrites is set to zero, of an array that the step before made anew. (Dead
/// store elimination.)
void dead_stores(ir::Module& module);

}  // namespace lantern::passes
