// The name of a module that --emit writes, for languages in which modules are named in their text.
#pragma once

#include <string>

#include "options.hpp"

namespace lantern::tool {

/// The name of the output's file, or of the source's where the output is standard output. Error: it is no name, which begins
/// with a letter and has letters, digits and underscores.
std::string module_name(const Options& options);

}  // namespace lantern::tool
