// The name of a module that --emit writes, by which its users import it.
#pragma once

#include <string>

#include "options.hpp"

namespace lantern::tool {

/// The name of the output's file, or of the source's where the output is standard output. Error: it is no name: it
/// begins with no letter, has other characters than letters, digits and underscores, or is a word of Python for its module.
std::string module_name(const Options& options);

}  // namespace lantern::tool
