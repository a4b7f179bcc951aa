// The graph as a picture, in Graphviz's language: lanternc --emit=svg and papers about small programs.
#pragma once

#include <string>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// One cluster per function and block, one node per operation and parameter. Solid edges carry data, dashed
/// ones lead into and out of nested blocks, dotted ones give the order of effects within a block.
std::string dot(const Module& module);

}  // namespace lantern::ir
