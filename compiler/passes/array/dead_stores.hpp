// dead_stores: elements that nothing reads again are not written.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Drops writes of elements that nothing reads afterwards, neither the loop nor what follows it: the adjoint
/// of what an iteration overwrites is set to zero, of an array that the step before made anew; that of a
/// joined tensor is set to zero where the second part was, and then read where the first part was. (Dead
/// store elimination.)
void dead_stores(ir::Module& module);

}  // namespace lantern::passes
