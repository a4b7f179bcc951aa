// The graph as bytes, to be compared or hashed: equal bytes mean equal graphs.
//
// Everything counts that a pass, a printer or a message can ask for: operations with their attributes, texts and
// places, types, and the names that the user gave. Values are numbered in the order of their definition, so that
// neither addresses nor the order in which a module was built show.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// The number by which a function that is called is in the bytes.
using FunctionNumber = std::function<std::uint64_t(const Function*)>;

/// A function but for its own name. Time and bytes are linear in its size, however deeply it nests.
std::string encoded(const Function& function, const FunctionNumber& number);
/// All functions in their order, with their names.
std::string encoded(const Module& module);

}  // namespace lantern::ir
