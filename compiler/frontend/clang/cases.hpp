// The statements that a case of a switch runs.
#pragma once

#include "lantern/compiler/frontend/clang/ways.hpp"

namespace lantern::frontend {

/// What runs when a switch jumps to its group `first`: the group's statements and those that it falls through
/// to, without the break that ends them.
Statements case_statements(const Node* selection, std::size_t first);

}  // namespace lantern::frontend
