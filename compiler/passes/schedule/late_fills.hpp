// Fills of tensors, moved down to what needs them.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Tensors that begin with one number throughout are filled right before their first use (code sinking, Knoop, Ruething and
/// Steffen, "Partial dead code elimination", PLDI 1994). Adjoints are all begun where the backward part begins: their memory
/// is taken late now, and a call of cuDNN or cuBLAS that adds to such a tensor is in the same function, so that it can
/// write in place of adding. For these calls zeros_like becomes a fill.
void late_fills(ir::Module& module);

}  // namespace lantern::passes
