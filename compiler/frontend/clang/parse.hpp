// Clang over one file: the only door to it. Nothing of Clang's headers shows here.
#pragma once

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

struct Parsed {
  bool good = false;     ///< no error
  std::string messages;  ///< Clang's
};

/// Parses the file as C++20 and fills the unit. `arguments` as for clang++.
Parsed parse(const std::string& path, const std::vector<std::string>& arguments, Unit& unit);

}  // namespace lantern::frontend
