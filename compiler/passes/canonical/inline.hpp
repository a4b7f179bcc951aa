// Whether a function may take the place of a call.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// No check of a size at the call or the return would be lost.
bool types_allow_inlining(const ir::Op& call);

}  // namespace lantern::passes
