// Closure conversion: continuations become functions of the module.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Every `fun` becomes a module function whose first parameters are the values it captured, and a `closure`
/// of them where it stood; one that refers to itself rebuilds its own closure from these parameters.
/// Constants are repeated instead of captured. Targets without nested functions print only closed modules.
/// Linear in the size of the module and of the captures, without recursion. Does nothing to a module that is
/// closed.
void close(ir::Module& module);

}  // namespace lantern::passes
