// The emulator's text, then the rewritten source under its own line numbers.
#include "lantern/codegen/toolchain/emulate.hpp"

#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/runtime/cuda/rewrite_launches.hpp"

namespace lantern::codegen {

std::unique_ptr<LoadedCode> compile_emulated(const std::string& cu_source, bool races) {
  ClangOptions options;
  options.opt_level = 1;
  options.contract = false;
  options.file_name = "generated.cpp";
  std::string text(launch_emulator_text());
  if (races) text = "#define LANTERN_FIND_RACES\n" + text + "\n" + std::string(race_detector_text());
  text += "\n#line 1 \"generated.cu\"\n" + rewrite_launches(cu_source);
  if (!races) return compile_with_system_compiler(text, Language::cpp, options);
  // What the sanitizer calls is in the text: its run time is not linked.
  return compile_with_system_compiler(text, Language::cpp, options, {},
                                      {"-fsanitize=thread", "-nodefaultlibs", "-lstdc++", "-lm", "-lc", "-lgcc_s", "-lgcc"});
}

}  // namespace lantern::codegen
