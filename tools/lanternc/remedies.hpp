// What to write where g++ or Clang refuses a use of a Rep as if it were a value of C++, and where a header is missing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::tool {

/// The remedy for an error with these notes, as g++ or Clang words them; nothing where none is known. `include`: the
/// folder of Lantern's headers, where names that are not declared are looked for; empty: nowhere.
std::optional<std::string> remedy(std::string_view error, const std::vector<std::string_view>& notes,
                                  const std::string& include);

}  // namespace lantern::tool
