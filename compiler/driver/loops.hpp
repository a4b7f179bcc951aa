// Whether calls of generated code work through loops.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::core::driver {

/// True where something is computed over and over: a loop, a recursion, arithmetic of whole tensors. Of
/// numbers that few operations make none is worth a change of the processor's mode.
bool has_loops(const ir::Module& module);

}  // namespace lantern::core::driver
