// Statements of a block in rows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lantern/compiler/drawing/drawing.hpp"

namespace lantern::ir {

struct DrawnStatement {
  DrawnItem item;
  std::vector<std::size_t> needs;  ///< statements before this one whose values it uses
};

/// Rows at most so many characters wide where items allow; each item directly above what uses it. Long blocks
/// are folded into groups of statements that follow one another.
DrawnBlock arranged(std::string title, std::vector<DrawnStatement> statements, std::size_t row);

}  // namespace lantern::ir
