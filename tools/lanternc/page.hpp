// --emit=html: one page that needs no other file.
#pragma once

#include <string>
#include <vector>

#include "lantern/ir/graph.hpp"
#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// The user's source, the graph (drawn, and as text) and the generated C++ of each function side by side. Pointing
/// at a line or an item marks what it became, or what it came from.
std::string page(const std::vector<StagedFunction>& functions, const Options& options);

}  // namespace lantern::tool
