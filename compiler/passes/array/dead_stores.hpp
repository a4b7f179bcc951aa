// dead_stores: elements that nothing reads again are not written.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Drops writes of elements that nothing reads afterwards, in loops after which nothing uses the tensor:
/// the adjoint of what an iteration overwrites is set to zero, of an array that the step before made anew. (Dead
/// store elimination.)
void dead_stores(ir::Module& module);

}  // namespace lantern::passes
