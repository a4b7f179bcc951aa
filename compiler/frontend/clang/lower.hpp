// New text for functions that hold staged control flow.
#pragma once

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

/// The file with its staged control flow rewritten into calls of compiler/frontend/native.hpp. What cannot be
/// rewritten is added to the unit's complaints; the text is then of no use.
std::string lower(Unit& unit);

}  // namespace lantern::frontend
