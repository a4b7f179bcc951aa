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

  /// What a program is linked with, in order; with or without compile(). Libraries of optional headers (data, linalg,
  /// with compile() also onnx) and what these call are among them where they are installed: a linker takes of them only
  /// what the program calls. `is_static`: a program without shared libraries, of those that are installed as archives.
  std::vector<std::string> link_arguments(bool with_jit, bool is_static) const;

  /// Libraries that are not installed, or not as archives, and that what a linker said asks for: those of optional
  /// headers call them, or the user's code calls fmt.
  std::vector<std::string> missing_libraries(const std::string& linker_said, bool is_static) const;

  /// fmt and the like: there for the user's own code, and at no cost where it uses none.
  std::vector<std::string> optional_arguments(bool is_static) const;
};

/// PREFIX/include and PREFIX/lib where the executable is PREFIX/bin/lanternc; else the build tree. Error
/// where neither is there.
Installation find_installation();

}  // namespace lantern::tool
