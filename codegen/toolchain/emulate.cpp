// The emulator's text, then the rewritten source under its own line numbers.
#include "lantern/codegen/toolchain/emulate.hpp"

#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/runtime/cuda/rewrite_launches.hpp"

namespace lantern::codegen {

std::unique_ptr<LoadedCode> compile_emulated(const std::string& cu_source) {
  ClangOptions options;
  options.opt_level = 1;
  options.contract = false;
  options.file_name = "generated.cpp";
  const std::string text = std::string(launch_emulator_text()) + "\n#line 1 \"generated.cu\"\n";
  return compile_with_system_compiler(text + rewrite_launches(cu_source), Language::cpp, options);
}

}  // namespace lantern::codegen
