// Writes of both sides of a branch to the same elements become writes behind it, of what the sides yield:
//
//   if (c) { f[i] = x; } else { f[i] = y; }      becomes      v = c ? x : y; f[i] = v;
//
// so that an iteration writes the element once, in whichever way it chose, and has one adjoint for it. The sinking of
// stores out of a diamond in LLVM's MergedLoadStoreMotion does the same.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// In a block of direct style, and in those inside. True where something changed.
bool sink_branch_writes(ir::Block* block);

}  // namespace lantern::passes
