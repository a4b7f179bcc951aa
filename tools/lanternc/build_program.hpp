// The program: the user's files, linked with the code generated for their functions.
#pragma once

#include <vector>

#include "options.hpp"
#include "output.hpp"
#include "stage.hpp"
#include "user_code.hpp"

namespace lantern::tool {

void build_program(std::vector<StagedFunction>& functions, UserCode& code, const Options& options,
                   Output& output);

}  // namespace lantern::tool
