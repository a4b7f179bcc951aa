// --emit: everything that is not a program.
#pragma once

#include <vector>

#include "options.hpp"
#include "output.hpp"
#include "stage.hpp"

namespace lantern::tool {

/// Errors: a tool that is missing (dot, nvcc, the C++ compiler as linker); a function that the target cannot
/// hold.
void emit(const std::vector<StagedFunction>& functions, const Options& options, Output& output);

}  // namespace lantern::tool
