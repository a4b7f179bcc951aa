// Asks it for its version: the same path may hold another compiler tomorrow.
#include "compiler.hpp"

#include <sys/stat.h>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/codegen/toolchain/system_compiler.hpp"

namespace lantern::tool {

Compiler find_compiler() {
  Compiler compiler{codegen::system_compiler_command(), {}};
  std::vector<std::string> ask = compiler.command;
  ask.push_back("--version");
  const std::string version = codegen::run_process(ask).out;
  compiler.is_clang = version.find("clang") != std::string::npos;
  for (const std::string& word : compiler.command) compiler.identity += word + " ";
  compiler.identity += version;
  struct stat status {};
  if (const auto path = codegen::find_program(compiler.command.back());
      path && ::stat(path->c_str(), &status) == 0)
    compiler.identity += *path + " " + std::to_string(status.st_size) + " " +
                         std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
  return compiler;
}

}  // namespace lantern::tool
