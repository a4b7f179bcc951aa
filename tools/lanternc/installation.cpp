// The layout of an installation and of a build tree.
#include "installation.hpp"

#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "lantern/ir/error.hpp"

namespace lantern::tool {

namespace fs = std::filesystem;

namespace {

bool complete(const Installation& i) {
  std::error_code ignored;
  return fs::exists(i.include / "lantern" / "lantern.hpp", ignored) &&
         fs::exists(i.libraries / "liblantern_core.a", ignored);
}

std::vector<std::string> parts(std::string_view text, char separator) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> all;
  for (std::string part; std::getline(stream, part, separator);)
    if (!part.empty()) all.push_back(part);
  return all;
}

/// What programs link only where they call it.
struct Part {
  std::string archive;
  std::vector<std::string> calls;  ///< files
  bool needs_compiler = false;     ///< compile()
};
std::vector<Part> optional_parts() {
  return {{"liblantern_onnx.a", parts(LANTERNC_ONNX_CALLS, '|'), true},
          {"liblantern_data.a", parts(LANTERNC_DATA_CALLS, '|')},
          {"liblantern_linalg.a", parts(LANTERNC_LINALG_CALLS, '|')},
          {"liblantern_distributed.a", {}}};  // looks for MPI when it is first used
}

/// The file to link of a library: the archive beside libNAME.so, or the library itself; nothing where it is not there.
std::optional<std::string> linked_file(const std::string& library, bool is_static) {
  const fs::path path = library;
  const std::string name = path.filename().string();
  const bool shared = name.find(".so") != std::string::npos;
  const fs::path file = is_static && shared ? path.parent_path() / (name.substr(0, name.find(".so")) + ".a") : path;
  return fs::exists(file) ? std::optional(file.string()) : std::nullopt;
}

}  // namespace

Installation find_installation() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (program.empty()) throw Error("/proc/self/exe cannot be read, which says where Lantern's headers are; mount /proc");
  const fs::path prefix = program.parent_path().parent_path();
  const std::vector<std::string> flags = parts(LANTERNC_FLAGS, ' ');
  const Installation installed{prefix / "include", prefix / "lib", flags};
  if (complete(installed)) return installed;
  const Installation build{LANTERNC_BUILD_INCLUDE, LANTERNC_BUILD_LIBRARIES, flags};
  if (complete(build)) return build;
  throw Error("Lantern's headers and libraries are not in '" + prefix.string() +
              "'; install lanternc with the library");
}

std::vector<std::string> Installation::link_arguments(bool with_jit, bool is_static) const {
  // Lantern's object files hold many functions. The linker drops those that the program never calls.
  std::vector<std::string> all{"-Wl,--as-needed", "-Wl,--gc-sections"}, called;
  for (const Part& part : optional_parts()) {
    const fs::path archive = libraries / part.archive;
    if (!fs::exists(archive) || (part.needs_compiler && !with_jit)) continue;
    all.push_back(archive.string());
    for (const std::string& library : part.calls)
      if (const auto file = linked_file(library, is_static)) called.push_back(*file);
  }
  all.push_back((libraries / (with_jit ? "liblantern.a" : "liblantern_aot.a")).string());
  all.push_back((libraries / "liblantern_core.a").string());
  all.insert(all.end(), called.begin(), called.end());
  for (const std::string& library : parts(LANTERNC_SUPPORT_LIBRARIES, '|')) all.push_back(library);
  if (with_jit) {
    if (is_static) throw Error("--with-jit: expected a program with shared libraries, since LLVM is one; leave out -static");
    for (const std::string& library : parts(LANTERNC_JIT_LIBRARIES, '|')) {
      if (!fs::exists(library))
        throw Error("--with-jit: the library '" + library + "' is missing; install it");
      all.push_back(library);
      // Found again when the program starts, wherever the distribution keeps it.
      if (library.find(".so") != std::string::npos)
        all.push_back("-Wl,-rpath," + fs::path(library).parent_path().string());
    }
  }
  for (std::string& argument : optional_arguments(is_static)) all.push_back(std::move(argument));
  all.insert(all.end(), {"-ldl", "-lm", "-pthread"});
  return all;
}

std::vector<std::string> Installation::missing_libraries(const std::string& linker_said, bool is_static) const {
  std::vector<std::string> missing;
  const auto look_at = [&](const std::string& library, const std::string& asking, const char* remedy) {
    if (linker_said.find(asking) != std::string::npos && !linked_file(library, is_static)) missing.push_back(library + remedy);
  };
  for (const Part& part : optional_parts())
    for (const std::string& library : part.calls) look_at(library, part.archive, "");
  for (const std::string& library : parts(LANTERNC_OPTIONAL_LIBRARIES, '|'))
    look_at(library, "fmt::", "; -DFMT_HEADER_ONLY compiles fmt with the program");
  return missing;
}

std::vector<std::string> Installation::optional_arguments(bool is_static) const {
  std::vector<std::string> all{"-Wl,--as-needed"};
  for (const std::string& library : parts(LANTERNC_OPTIONAL_LIBRARIES, '|'))
    if (const auto file = linked_file(library, is_static)) all.push_back(*file);
  return all;
}

}  // namespace lantern::tool
