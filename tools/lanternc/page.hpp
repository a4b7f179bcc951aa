// --emit=html: one page that needs no other file.
#pragma once

#include <string>
#include <vector>

#include "lantern/ir/graph.hpp"
#include "options.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// The user's source, the graph and the generated C++ of each function side by side. Pointing at a line marks
/// what it became, or what it came from; the graph is drawn below. `pictures`: an SVG for each function, in
/// which nodes have the classes of line_class; empty where it could not be drawn.
std::string page(const std::vector<StagedFunction>& functions, const Options& options,
                 const std::vector<std::string>& pictures);

/// The class of everything that comes from one line of the user's: "at-model.cpp-12", without characters that
/// style sheets give a meaning.
std::string line_class(const ir::Location& loc);

}  // namespace lantern::tool
