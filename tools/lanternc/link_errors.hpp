// What a linker's errors mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lantern::tool {

/// What is wrong and what to write, in place of what GNU ld says: names that several files define, or none.
/// Empty where it says something else.
std::optional<std::string> link_error(std::string_view linker);

}  // namespace lantern::tool
