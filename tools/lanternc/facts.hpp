// What the host side of a LANTERN_FUNCTION must know besides the entry point (driver/function.hpp).
#pragma once

#include <string>

#include "stage.hpp"

namespace lantern::tool {

/// Generated code in a program is NAME_lantern, so that it never meets a name of the user's.
inline constexpr const char* linked_suffix = "_lantern";

/// Defines NAME_lantern_facts, in C and C++.
std::string facts(const StagedFunction& function, bool strict_math);

}  // namespace lantern::tool
