// Messages of staging with the user's line and the expression underlined.
#pragma once

#include <string>

#include "user_code.hpp"

namespace lantern::tool {

/// Below each line "FILE:LINE:COLUMN: error: ..." or "note: ..." the source line, and the expression that is
/// meant, found in Clang's syntax tree of the file: "~~~^~~~". Columns become those of that expression; one
/// of rewritten text that the user has not written is left out. Notes about arguments go to where the
/// variable is declared.
std::string illustrated(const std::string& messages, const UserCode& code);

}  // namespace lantern::tool
