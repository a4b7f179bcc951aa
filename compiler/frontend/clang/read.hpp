// From Clang's syntax tree to the rewriter's own: functions that hold something staged, as the user wrote
// them.
#pragma once

#include "lantern/compiler/frontend/clang/facts.hpp"

namespace lantern::frontend {

/// The functions of a file of the user's in which the facts found staged conditions or assigned elements.
void read_functions(clang::ASTContext& ast, clang::FileID file, const Facts& facts, Unit& unit);

}  // namespace lantern::frontend
