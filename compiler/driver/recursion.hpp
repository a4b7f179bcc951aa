// Whether generated code may recurse: calls then run on a large stack.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::driver {

/// True where a function can reach itself through calls, or a closure is left: continuations nest as deep as
/// the program runs.
bool has_recursion(const ir::Module& module);

}  // namespace lantern::driver
