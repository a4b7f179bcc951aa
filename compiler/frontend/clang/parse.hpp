// Clang over one file: the only door to it. Nothing of Clang's headers shows here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lantern/compiler/frontend/clang/tree.hpp"

namespace lantern::frontend {

struct Parsed {
  bool good = false;     ///< no error
  std::string messages;  ///< Clang's
};

/// An include directive for a header of the user's: neither a system header nor one of Lantern's.
struct Inclusion {
  std::size_t in = 0;    ///< the file it is in: 0 for the one parsed, i + 1 for Inclusions::files[i]
  std::uint32_t at = 0;  ///< the offset of the file's name there
  std::string path;
  std::optional<std::size_t>
      file;  ///< of Inclusions::files; nothing where the directive had no effect any more
};
struct Inclusions {
  std::vector<Unit> files;  ///< each time that a header was read
  std::vector<Inclusion> all;
};

/// What every file is parsed after.
inline constexpr const char* native_header = "lantern/compiler/frontend/native.hpp";

/// Parses the file as C++20 and fills the unit, and those of the headers. `arguments` as for clang++.
Parsed parse(const std::string& path, const std::vector<std::string>& arguments, Unit& unit,
             Inclusions& inclusions);

}  // namespace lantern::frontend
