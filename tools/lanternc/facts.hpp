// What the host side of a LANTERN_FUNCTION must know besides the entry point (driver/function.hpp).
#pragma once

#include <string>

#include "stage.hpp"

namespace lantern::tool {

/// Generated functions in a program are called NAME_lantern: a debugger shows them beside the user's.
inline constexpr const char* linked_suffix = "_lantern";

/// Defines lantern_facts_NAME, in C and C++.
std::string facts(const StagedFunction& function, bool strict_math);

}  // namespace lantern::tool
