// The graph on the page of --emit=html: boxes that fold, laid out by the browser.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lantern/compiler/drawing/svg.hpp"

namespace lantern::tool {

/// The user's line at a place; each file is read once.
ir::SourceLine source_lines();

/// Elements for the boxes of one program. `class_of`: the class of all that comes from one line of the
/// user's, empty where nothing on the page does.
std::string drawn(const std::vector<ir::DrawnItem>& functions, const ir::SourceLine& source_line,
                  const std::function<std::string(const ir::Location&)>& class_of);

}  // namespace lantern::tool
