// tail_calls: a function that calls itself only as the last thing it does becomes a loop.
//
//   f(x, n) = if (n == 0) x else f(g(x), n - 1)
//   f(x, n) = going = true; r; while (going) { if (n == 0) { going = false; r = x } else { x = g(x); n = n -
//   1 } }; r
//
// Derivatives of a loop keep what its iterations save on tapes and need no stack. Runs before a function is
// differentiated.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// True where the function was rewritten: it is in direct style, gives scalars, and every call of itself
/// inside it is where its results are the function's.
bool tail_calls(ir::Function& f);

}  // namespace lantern::passes
