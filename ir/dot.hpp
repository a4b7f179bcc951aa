// The graph as a picture, in Graphviz's language: lanternc --emit=svg and papers about small programs.
#pragma once

#include <functional>
#include <string>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// One cluster per function and block, one node per operation and parameter. Solid edges carry data, dashed
/// ones lead into and out of nested blocks, dotted ones give the order of effects within a block.
/// `class_of`: the style class of what a place of the user's became, for pages that show the picture; an
/// empty text gives none.
using ClassOf = std::function<std::string(const Location&)>;
std::string dot(const Module& module, const ClassOf& class_of = {});

}  // namespace lantern::ir
