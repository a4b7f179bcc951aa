// The libraries that the command line names.
#pragma once

#include "compiler.hpp"
#include "installation.hpp"
#include "options.hpp"

namespace lantern::tool {

/// Error, before anything is compiled: the linker finds no library of a name that is given with -l.
void check_libraries(const Options& options, const Installation& installation, const Compiler& compiler);

}  // namespace lantern::tool
