// Where Lantern's headers and libraries are: beside this executable, or in the build tree it comes from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lantern::tool {

struct Installation {
  std::filesystem::path include;
  std::filesystem::path libraries;
  /// Flags without which objects do not fit these libraries (sanitizers).
  std::vector<std::string> flags;

  /// What a program is linked with, in order; with or without compile().
  std::vector<std::string> link_arguments(bool with_jit) const;

  /// fmt and the like: there for the user's own code, and at no cost where it uses none.
  std::vector<std::string> optional_arguments() const;
};

/// PREFIX/include and PREFIX/lib where the executable is PREFIX/bin/lanternc; else the build tree. Error
/// where neither is there.
Installation find_installation();

}  // namespace lantern::tool
