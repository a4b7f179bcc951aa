// The rewritten source under its own line numbers, with the emulator as a precompiled header. Each text is compiled once in a
// process.
#include "lantern/codegen/toolchain/emulate.hpp"

#include <filesystem>
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

/// The libraries of texts that were compiled before. The loader opens a file once only, and knows it by its name too: each load takes a
/// copy of the file under a name of its own, with counters and memory of its own.
class KnownLibraries {
 public:
  using Key = std::pair<std::vector<std::string>, std::string>;  ///< the compiler with its arguments, and the text

  /// Nothing where the text has to be compiled.
  std::unique_ptr<LoadedCode> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto known = paths_.find(key);
    if (known == paths_.end()) return nullptr;
    const std::filesystem::path copy = path();
    std::filesystem::copy_file(known->second, copy);
    std::unique_ptr<LoadedCode> code = load_shared_library(copy);
    std::filesystem::remove(copy);
    return code;
  }
  std::filesystem::path new_path() {
    const std::lock_guard lock(mutex_);
    return path();
  }
  void add(const Key& key, const std::filesystem::path& library) {
    const std::lock_guard lock(mutex_);
    paths_.try_emplace(key, library);
  }

 private:
  std::filesystem::path path() { return directory_.path() / (std::to_string(++files_) + ".so"); }

  std::mutex mutex_;
  TemporaryDirectory directory_;
  std::map<Key, std::filesystem::path> paths_;
  std::size_t files_ = 0;
};

}  // namespace

std::unique_ptr<LoadedCode> compile_emulated(const std::string& cu_source, bool races) {
  ClangOptions options;
  options.opt_level = races ? 1 : 0;  // a call takes less time than its compilation, but for the race detector's
  options.contract = false;
  options.file_name = "generated.cpp";
  static KnownLibraries known;
  const std::vector<std::string>& arguments = emulator_arguments(options, races);
  std::vector<std::string> compiler = system_compiler_command();
  compiler.insert(compiler.end(), arguments.begin(), arguments.end());
  const KnownLibraries::Key key(std::move(compiler), cu_source);
  if (auto code = known.find(key)) return code;
  const std::filesystem::path library = known.new_path();
  build_shared_library(library, "#line 1 \"generated.cu\"\n" + rewrite_launches(cu_source), Language::cpp, options, {}, arguments);
  known.add(key, library);
  return known.find(key);
}

}  // namespace lantern::codegen
