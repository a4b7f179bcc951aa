// The rewritten source under its own line numbers, with the emulator as a precompiled header.
#include "lantern/codegen/toolchain/emulate.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/runtime/cuda/rewrite_launches.hpp"

namespace lantern::codegen {

namespace {

/// The emulator, compiled once in a process for each compiler.
const std::vector<std::string>& emulator_arguments(const ClangOptions& options, bool races) {
  static std::mutex mutex;
  static std::map<std::pair<std::vector<std::string>, bool>, PrecompiledHeader> headers;
  const std::lock_guard lock(mutex);
  const std::pair key(system_compiler_command(), races);
  if (const auto known = headers.find(key); known != headers.end()) return known->second.arguments();
  std::string text(launch_emulator_text());
  if (races) text = "#define LANTERN_FIND_RACES\n" + text + "\n" + std::string(race_detector_text());
  std::vector<std::string> arguments;
  // What the sanitizer calls is in the text: its run time is not linked.
  if (races) arguments = {"-fsanitize=thread", "-nodefaultlibs", "-lstdc++", "-lm", "-lc", "-lgcc_s", "-lgcc"};
  return headers.try_emplace(key, text, options, std::move(arguments)).first->second.arguments();
}

}  // namespace

std::unique_ptr<LoadedCode> compile_emulated(const std::string& cu_source, bool races) {
  ClangOptions options;
  options.opt_level = races ? 1 : 0;  // a call takes less time than its compilation, but for the race detector's
  options.contract = false;
  options.file_name = "generated.cpp";
  return compile_with_system_compiler("#line 1 \"generated.cu\"\n" + rewrite_launches(cu_source), Language::cpp, options, {},
                                      emulator_arguments(options, races));
}

}  // namespace lantern::codegen
