// A drawing as an SVG image: lanternc --emit=svg.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lantern/compiler/drawing/drawing.hpp"
#include "lantern/ir/escape.hpp"

namespace lantern::ir {

/// The text of the user's line at a place; empty where it is not known.
using SourceLine = std::function<std::string(const Location&)>;

/// One image that needs nothing else. Folded boxes show their first line; items tell their types and the
/// user's line to who points at them.
std::string svg(const std::vector<DrawnItem>& functions, const SourceLine& source_line = {});

/// What pointing at an item tells: its types, its place and the line there; not yet markup.
std::string hint(const DrawnItem& item, const SourceLine& source_line);

/// What style sheets call items of a kind.
const char* style_class(DrawnItem::Kind kind);

/// Behind the text of a box: "line 7, 42 operations".
std::string note(const DrawnItem& box);

/// "42 operations".
std::string amount(std::size_t operations);

}  // namespace lantern::ir
