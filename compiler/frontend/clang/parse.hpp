// Clang over one file: the only door to it. Nothing of Clang's headers shows here.
#pragma once

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

struct Parsed {
  bool good = false;     ///< no error
  std::string messages;  ///< Clang's
};

/// What every file is parsed after.
inline constexpr const char* native_header = "lantern/compiler/frontend/native.hpp";

/// Writes a header as a precompiled one; false where it has errors.
bool precompile(const std::string& header, const std::vector<std::string>& arguments, const std::string& to);
/// Of the library that parses.
std::string clang_version();

/// Parses the file as C++20 and fills the unit. `arguments` as for clang++.
Parsed parse(const std::string& path, const std::vector<std::string>& arguments, Unit& unit);

}  // namespace lantern::frontend
