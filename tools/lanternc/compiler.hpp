// The system's C++ compiler: which one it is.
#pragma once

#include <string>
#include <vector>

namespace lantern::tool {

struct Compiler {
  std::vector<std::string> command;
  std::string identity{};  ///< what it says of its version, and the file it is
  bool is_clang = false;
};

/// The compiler of codegen::system_compiler_command. Error where there is none.
Compiler find_compiler();

}  // namespace lantern::tool
