// Functions that call themselves.
#pragma once

#include <string>
#include <unordered_set>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// The functions of a module that may call themselves, by way of others or not; a closure counts as a call.
std::unordered_set<const Function*> recursive_functions(const Module& module);

/// Whether calls nest as deep as the data says: they then run on a large stack. True where a function may
/// call itself, or a continuation is left, which nest as deep as the program runs.
bool has_recursion(const Module& module);

/// What is said of a recursion for which there is not enough stack.
std::string too_deep(const std::string& function);

}  // namespace lantern::ir
