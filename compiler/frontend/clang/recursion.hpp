// Functions that call themselves under staged conditions.
#pragma once

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

/// Marks functions with staged conditions that lie on a cycle of calls: staging them would not end, so they
/// become staged functions. Complains about a function that calls itself on every path: it would not end at
/// run time either.
void find_recursion(Unit& unit);

}  // namespace lantern::frontend
