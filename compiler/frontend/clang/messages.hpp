// Complaints as text, in the form of compilers.
#pragma once

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

/// All complaints of a unit in order of place: "file:line:col: error: text", the line, a caret, then the
/// notes, each with its fix-it below the line that it changes.
std::string messages(const Unit& unit);

}  // namespace lantern::frontend
