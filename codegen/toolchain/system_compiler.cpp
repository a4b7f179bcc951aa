// Writes the text to a file, has it compiled to a shared library, opens that.
#include "lantern/codegen/toolchain/system_compiler.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::codegen {

std::vector<std::string> system_compiler_command() {
  if (const char* variable = std::getenv("CXX")) {
    std::istringstream words(variable);
    std::vector<std::string> command;
    for (std::string word; words >> word;) command.push_back(word);
    if (!command.empty()) {
      if (find_program(command.front())) return command;
      throw Error("the C++ compiler named by CXX does not exist: '" + command.front() +
                  "'; set CXX to an installed compiler or unset it");
    }
  }
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (find_program(name)) return {name};
  }
  throw Error("no C++ compiler found; install g++ or clang++, or name one in the environment variable CXX");
}

namespace {

constexpr const char* host_table_name = "lantern_host_functions";

// A shared library cannot be linked against bare addresses. Each host function becomes a jump through a table
// that is filled in after loading; assembly, because only that needs no knowledge of the function's type.
std::string host_function_stubs(std::span<const HostSymbol> symbols, Language language) {
  if (symbols.empty()) return {};
  std::ostringstream text;
  text << (language == Language::cpp ? "\nextern \"C\" {" : "\n") << "\nvoid* " << host_table_name << "["
       << symbols.size() << "];\n";
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const std::string& name = symbols[i].name;
    text << "__asm__(\".text\\n.globl " << name << "\\n.hidden " << name << "\\n.type " << name
         << ", %function\\n"
         << name << ":\\n\"\n";
#if defined(__x86_64__)
    text << "  \"movq " << host_table_name << "@GOTPCREL(%rip), %r11\\njmpq *" << 8 * i << "(%r11)\\n\");\n";
#elif defined(__aarch64__)
    text << "  \"adrp x16, :got:" << host_table_name << "\\nldr x16, [x16, :got_lo12:" << host_table_name
         << "]\\nldr x16, [x16, #" << 8 * i << "]\\nbr x16\\n\");\n";
#else
#error "host_function_stubs: add the indirect jump of this processor"
#endif
  }
  text << (language == Language::cpp ? "}\n" : "");
  return text.str();
}

class SharedLibrary final : public LoadedCode {
 public:
  SharedLibrary(std::optional<TemporaryDirectory> directory, const std::string& path, std::span<const HostSymbol> symbols)
      : directory_(std::move(directory)), handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw InternalError(std::string("cannot load generated code: ") + ::dlerror());
    if (symbols.empty()) return;
    void** table = static_cast<void**>(symbol(host_table_name));
    for (std::size_t i = 0; i < symbols.size(); ++i) table[i] = symbols[i].address;
  }
  ~SharedLibrary() override { ::dlclose(handle_); }

  void* symbol(const std::string& name) const override {
    void* address = ::dlsym(handle_, name.c_str());
    if (address == nullptr) throw Error("compiled code has no symbol named '" + name + "'");
    return address;
  }

 private:
  std::optional<TemporaryDirectory> directory_;  // kept for debuggers, which want to read the library and its source
  void* handle_;
};

void add_code_options(std::vector<std::string>& command, Language language, const ClangOptions& options) {
  const auto add = [&](std::initializer_list<std::string> more) { command.insert(command.end(), more.begin(), more.end()); };
  add({"-fPIC", "-w", "-fwrapv", "-O" + std::to_string(options.opt_level), "-fno-math-errno",
       // What "within one expression" is called. gcc before 14 then contracts nothing, which is safe.
       options.contract ? "-ffp-contract=on" : "-ffp-contract=off",
       "-march=" + (options.target_cpu.empty() ? std::string("native") : options.target_cpu)});
  if (options.debug_info) add({"-g"});
  if (language == Language::c) {
    add({"-x", "c", "-std=c11", "-Werror=implicit-function-declaration"});
  } else {
    add({"-x", "c++", "-std=c++20", "-fno-exceptions", "-fno-rtti"});
  }
}

void build(const TemporaryDirectory& directory, const std::string& library_path, const std::string& source, Language language,
           const ClangOptions& options, std::span<const HostSymbol> symbols, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = system_compiler_command();
  const auto add = [&](std::initializer_list<std::string> more) {
    command.insert(command.end(), more.begin(), more.end());
  };

  // Only the name proper: the text belongs into the private directory whatever file_name says.
  std::filesystem::path source_name = std::filesystem::path(options.file_name).filename();
  if (source_name.empty()) source_name = "generated.c";
  const std::string source_path = directory.path() / source_name;
  write_file(source_path, source + host_function_stubs(symbols, language));

  add({"-shared"});
  add_code_options(command, language, options);
  // Report what is missing now and not at the first call. `-x none` ends the effect of -x on what follows.
  add({source_path, "-x", "none", "-Wl,-z,defs", "-o", library_path, "-lm"});
  command.insert(command.end(), arguments.begin(), arguments.end());

  const ProcessResult result = run_process(command);
  if (result.status != 0) {
    throw InternalError("the system compiler does not accept the generated code:\n" + result.err +
                        result.out);
  }
}

}  // namespace

std::unique_ptr<LoadedCode> compile_with_system_compiler(const std::string& source, Language language,
                                                         const ClangOptions& options,
                                                         std::span<const HostSymbol> symbols,
                                                         const std::vector<std::string>& arguments) {
  TemporaryDirectory directory;
  const std::string path = directory.path() / "generated.so";
  build(directory, path, source, language, options, symbols, arguments);
  return std::make_unique<SharedLibrary>(std::move(directory), path, symbols);
}

PrecompiledHeader::PrecompiledHeader(const std::string& text, const ClangOptions& options, std::vector<std::string> arguments)
    : arguments_(std::move(arguments)) {
  const std::string path = directory_.path() / "header.hpp";
  write_file(path, text);
  std::vector<std::string> command = system_compiler_command();
  add_code_options(command, Language::cpp, options);
  command.insert(command.end(), arguments_.begin(), arguments_.end());
  command.insert(command.end(), {"-c", "-x", "c++-header", path, "-o", path + ".gch"});
  const ProcessResult result = run_process(command);
  if (result.status != 0) throw InternalError("the system compiler does not accept a header:\n" + result.err + result.out);
  arguments_.insert(arguments_.end(), {"-include", path});
}

void build_shared_library(const std::filesystem::path& path, const std::string& source, Language language,
                          const ClangOptions& options, std::span<const HostSymbol> symbols,
                          const std::vector<std::string>& arguments) {
  const UnfinishedFile file(path.string() + ".unfinished");
  build(TemporaryDirectory(), file.path(), source, language, options, symbols, arguments);
  std::filesystem::rename(file.path(), path);
}

std::unique_ptr<LoadedCode> load_shared_library(const std::filesystem::path& path, std::span<const HostSymbol> symbols) {
  return std::make_unique<SharedLibrary>(std::nullopt, path, symbols);
}

}  // namespace lantern::codegen
