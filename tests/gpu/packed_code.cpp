// What gpu_check uses of Clang and LLVM, for machines that have neither: a text was compiled where the program was packed, to a
// shared library in the folder `code` beside it. Packing runs all programs with PACKED_CODE=write, which adds what is missing.
#include <cinttypes>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lantern/codegen/toolchain/clang.hpp"
#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/host.hpp"
#include "lantern/codegen/toolchain/system_compiler.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::codegen {

// ---- a hash: FNV-1a of 128 bits (Fowler, Noll, Vo)

struct ContentHash::State {
  unsigned __int128 value = (static_cast<unsigned __int128>(0x6c62272e07bb0142) << 64) + 0x62b821756295c58d;
};
ContentHash::ContentHash() : state_(std::make_unique<State>()) {}
ContentHash::~ContentHash() = default;

ContentHash& ContentHash::add(std::string_view text) {
  constexpr auto prime = (static_cast<unsigned __int128>(1) << 88) + 0x13b;
  for (const char c : std::to_string(text.size()) + ":") state_->value = (state_->value ^ static_cast<unsigned char>(c)) * prime;
  for (const char c : text) state_->value = (state_->value ^ static_cast<unsigned char>(c)) * prime;
  return *this;
}
std::string ContentHash::text() const {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016" PRIx64 "%016" PRIx64, static_cast<std::uint64_t>(state_->value >> 64),
                static_cast<std::uint64_t>(state_->value));
  return digits;
}
std::string content_hash(std::string_view text) { return ContentHash().add(text).text(); }
std::string file_hash(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return in ? content_hash(std::string(std::istreambuf_iterator<char>(in), {})) : std::string();
}

// ---- the processor: one with AVX2, whichever packs and whichever runs

constexpr const char* processor = "x86-64-v3";
std::string host_processor() { return processor; }
Arithmetic arithmetic_of(const std::string&) { return {4, true}; }
bool is_processor(const std::string& name) { return name == processor; }
std::string clang_version() { return "packed"; }

// ---- code

namespace {

std::unique_ptr<LoadedCode> packed(const std::string& source, Language language, ClangOptions options,
                                   std::span<const HostSymbol> symbols) {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "code";
  ContentHash key;
  key.add(source).add(std::to_string(options.opt_level) + (options.contract ? "c" : "s"));
  for (const HostSymbol& symbol : symbols) key.add(symbol.name);
  const std::filesystem::path library = folder / (key.text() + ".so");
  if (!std::filesystem::exists(library)) {
    const char* mode = std::getenv("PACKED_CODE");
    if (!mode || std::string(mode) != "write") throw Error("the code of this program was not packed: " + library.string());
    std::filesystem::create_directories(folder);
    options.target_cpu = processor;
    build_shared_library(library, source, language, options, symbols, {"-fbracket-depth=4096", "-lmvec", "-s"});
  }
  return load_shared_library(library, symbols);
}

}  // namespace

std::unique_ptr<LoadedCode> compile_with_clang(const std::string& source, Language language, const ClangOptions& options,
                                               std::span<const HostSymbol> symbols) {
  return packed(source, language, options, symbols);
}

/// A part is its text: it becomes code where it is loaded.
std::vector<CompiledPart> compile_parts(std::span<const SourcePart> parts, Language, const ClangOptions&) {
  if (parts.size() != 1) throw Error("a program of several parts cannot be packed");
  const std::string& text = parts[0].text;
  return {CompiledPart{{text.begin(), text.end()}, {}}};
}
std::unique_ptr<LoadedCode> load_parts(std::span<const CompiledPart> parts, const ClangOptions& options,
                                       std::span<const HostSymbol> symbols) {
  return packed({parts[0].bytes.begin(), parts[0].bytes.end()}, Language::c, options, symbols);
}

}  // namespace lantern::codegen
