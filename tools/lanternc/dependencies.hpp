// The files that a compilation has read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lantern::tool {

/// The prerequisites in a file that a compiler wrote with -MD: a rule for make. Empty where there is none.
std::vector<std::string> read_dependencies(const std::filesystem::path& rule);

}  // namespace lantern::tool
