// expand: functions that the table composes of others (COMPOSED_OP, ir/ops.inc) are written out.
//
//   r = relu x        becomes   c = le x, 0;  r = select c, 0, x
//
// Derivatives have been taken by the row's own rule by then, which keeps the result and nothing else. Part of
// `lower`, so that no later pass and no printer meets them.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Returns whether there was anything to do.
bool expand(ir::Module& module);

}  // namespace lantern::passes
