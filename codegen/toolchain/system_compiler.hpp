// The tool chain that needs no library: the system's C++ compiler as a child process, and dlopen.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/toolchain/loaded_code.hpp"
#include "lantern/codegen/toolchain/process.hpp"

namespace lantern::codegen {

/// The command that runs the system's C++ compiler: the environment's CXX, which may carry arguments
/// ("ccache g++"), or the first found of c++, g++ and clang++. Throws lantern::Error when there is none.
std::vector<std::string> system_compiler_command();

/// Compiles header-free C or C++ to a shared library in a private temporary directory and loads it. The
/// compiler is that of `system_compiler_command`. `options` mean what they mean for `compile_with_clang`;
/// `arguments` come behind all others. `pic` is always on and `target_cpu` is a name the compiler's -march knows.
///
/// Throws lantern::Error when there is no compiler, lantern::InternalError with the compiler's output when
/// the text does not compile or calls something unknown. Takes a tenth of a second and more.
std::unique_ptr<LoadedCode> compile_with_system_compiler(const std::string& source, Language language,
                                                         const ClangOptions& options = {},
                                                         std::span<const HostSymbol> symbols = {},
                                                         const std::vector<std::string>& arguments = {});

/// C++ text that many sources begin with, compiled once to a header. A source that is compiled with the same options and with
/// `arguments()`, which are those given and the header's, begins with the text. The compiled header lies in a temporary directory
/// as long as this object exists. Throws as compile_with_system_compiler does.
class PrecompiledHeader {
 public:
  PrecompiledHeader(const std::string& text, const ClangOptions& options, std::vector<std::string> arguments);
  const std::vector<std::string>& arguments() const { return arguments_; }

 private:
  TemporaryDirectory directory_;
  std::vector<std::string> arguments_;
};

/// compile_with_system_compiler in two steps. The first writes a shared library to `path`. The second loads it and needs
/// no compiler; it takes the same symbols in the same order.
void build_shared_library(const std::filesystem::path& path, const std::string& source, Language language,
                          const ClangOptions& options = {}, std::span<const HostSymbol> symbols = {},
                          const std::vector<std::string>& arguments = {});
std::unique_ptr<LoadedCode> load_shared_library(const std::filesystem::path& path, std::span<const HostSymbol> symbols = {});

}  // namespace lantern::codegen
