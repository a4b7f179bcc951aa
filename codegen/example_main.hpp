// A main function that shows how the functions of a source are called.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lantern/codegen/unit.hpp"

namespace lantern::codegen {

/// "int main" for a source of its own kind, C or C++: calls each function once, with small arguments (numbers
/// about one, arrays of four elements, a tree of one node), and prints what it gives. The units are
/// `complete`.
std::string example_main(const std::vector<std::unique_ptr<Unit>>& units, const Target& target);

}  // namespace lantern::codegen
