// What the user's source says of a LANTERN_FUNCTION, for documentation in other languages.
#pragma once

#include <string>
#include <string_view>

#include "lantern/ir/location.hpp"

namespace lantern::tool {

struct Documentation {
  std::string program;  ///< what is compiled, as written: "grad(f)"; empty where the source cannot be read
  std::string comment;  ///< lines without their //, /* or *; empty where there is none
};

/// The comment above the line of LANTERN_FUNCTION(NAME, PROGRAM), or behind it; otherwise the one above the
/// definition of the function that PROGRAM names last. `line` counts from 1.
Documentation documentation(std::string_view source, std::size_t line);
/// The same of a LANTERN_FUNCTION at a place; empty where the file cannot be read.
Documentation documentation(const ir::Location& loc);

}  // namespace lantern::tool
