// An entry holds the whole key that it was made for, then the objects with their names. A program's entry holds the
// key of its code: programs that become the same text share it. The cache below sees to it that an entry is complete
// and as it was stored.
#include "lantern/compiler/driver/code_cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "lantern/codegen/toolchain/build_identity.hpp"
#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "lantern/codegen/toolchain/host.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/encode.hpp"
#include "lantern/ir/error.hpp"

namespace lantern::core::driver {

namespace {

namespace fs = std::filesystem;
using codegen::ClangOptions;
using codegen::CompiledPart;
using codegen::SourcePart;

/// To be raised when the same text is compiled to other code, or entries look otherwise.
constexpr std::string_view version = "lantern code 2";
constexpr std::string_view staged_version = "lantern program 1";
/// What the names of programs' entries begin with.
constexpr const char* staged_prefix = "program-";
constexpr std::uintmax_t most_bytes = 256U << 20;

/// Nothing where there is no such place.
std::optional<fs::path> directory_of(const CodeCache& cache) {
  if (cache.directory.empty()) return codegen::private_cache_directory("code");
  std::error_code failed;
  if (fs::create_directories(cache.directory, failed))
    fs::permissions(cache.directory, fs::perms::owner_all, failed);
  struct stat status {};
  if (::stat(cache.directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
  if ((status.st_uid != ::getuid() && status.st_uid != 0) || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw Error("compile: expected a cache directory that only its user can write to, got " +
                cache.directory + ", from which code of others could be run");
  return cache.directory;
}

std::string key_of(std::span<const SourcePart> parts, const ClangOptions& options) {
  codegen::ContentHash hash;
  hash.add(version).add(codegen::clang_version());
  hash.add(options.target_cpu.empty() ? codegen::host_processor() : options.target_cpu);
  hash.add(std::to_string(options.opt_level));
  hash.add(options.contract ? "contract" : "").add(options.pic ? "pic" : "");
  for (const SourcePart& part : parts) hash.add(std::to_string(static_cast<int>(part.kind))).add(part.text);
  return hash.text();
}

std::string text_of(const std::string& key, std::span<const CompiledPart> parts) {
  std::string text = std::string(version) + "\n" + key + "\n";
  for (const CompiledPart& part : parts) {
    text += std::to_string(part.names.size()) + "\n";
    for (const std::string& name : part.names) text += name + "\n";
    text += std::to_string(part.bytes.size()) + "\n";
    text.append(part.bytes.begin(), part.bytes.end());
  }
  return text;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool at_end() const { return text_.empty(); }
  std::optional<std::string_view> line() {
    const std::size_t end = text_.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    return take(end, 1);
  }
  std::optional<std::size_t> number() {
    const auto digits = line();
    std::size_t n = 0;
    if (!digits) return std::nullopt;
    const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), n);
    if (error != std::errc() || end != digits->data() + digits->size()) return std::nullopt;
    return n;
  }
  std::optional<std::string_view> bytes(std::size_t n) {
    if (n > text_.size()) return std::nullopt;
    return take(n, 0);
  }

 private:
  std::string_view take(std::size_t n, std::size_t skipped) {
    const std::string_view taken = text_.substr(0, n);
    text_.remove_prefix(n + skipped);
    return taken;
  }
  std::string_view text_;
};

/// Nothing where the text is no entry for the key.
std::optional<std::vector<CompiledPart>> parts_of(std::string_view text, std::string_view key) {
  Reader reader(text);
  if (reader.line() != version || reader.line() != key) return std::nullopt;
  std::vector<CompiledPart> parts;
  while (!reader.at_end()) {
    CompiledPart part;
    const auto names = reader.number();
    for (std::size_t i = 0; names && i < *names; ++i) {
      const auto name = reader.line();
      if (!name) return std::nullopt;
      part.names.emplace_back(*name);
    }
    const auto size = names ? reader.number() : std::nullopt;
    const auto bytes = size ? reader.bytes(*size) : std::nullopt;
    if (!bytes) return std::nullopt;
    part.bytes.assign(bytes->begin(), bytes->end());
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string program_text(const StagedProgram& program, const std::string& code) {
  return std::string(staged_version) + "\n" + program.key + "\n" + code + "\n" +
         (program.facts.recursive ? "recursive" : "") + "\n" + (program.facts.flush ? "flush" : "") + "\n";
}

/// The key of a program's code, and its facts. Nothing where the text is no entry for the program.
struct Pointer {
  std::string code;
  CallFacts facts;
};
std::optional<Pointer> pointer_of(std::string_view text, std::string_view key) {
  Reader reader(text);
  if (reader.line() != staged_version || reader.line() != key) return std::nullopt;
  const auto code = reader.line(), recursive = reader.line(), flush = reader.line();
  if (!flush || !reader.at_end() || code->find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  return Pointer{std::string(*code), {*recursive == "recursive", *flush == "flush"}};
}

/// Nothing where it is not kept, or is not for this process.
std::unique_ptr<codegen::LoadedCode> kept_code(codegen::DiskCache& disk, const std::string& key,
                                               const ClangOptions& options,
                                               std::span<const codegen::HostSymbol> symbols) {
  const auto entry = disk.load(key);
  const auto kept = entry ? parts_of(*entry, key) : std::nullopt;
  if (!kept) return nullptr;
  try {
    return load_parts(*kept, options, symbols);
  } catch (const InternalError&) {
    return nullptr;
  }
}

/// Lantern may be in several parts of the process.
std::string lantern_build() {
  const std::string passes = codegen::build_identity(reinterpret_cast<const void*>(&passes::run_pipeline));
  const std::string driver = codegen::build_identity(reinterpret_cast<const void*>(&staged_key));
  return passes.empty() || driver.empty() ? "" : passes + " " + driver;
}

}  // namespace

int clang_level(int opt) {
  const char* const given = std::getenv("LANTERN_CLANG_LEVEL");
  const std::string_view level = given ? given : "";
  return level.size() == 1 && level >= "0" && level <= "3" ? std::min(opt, level[0] - '0') : opt;
}

std::string staged_key(const ir::Module& staged, const CompileOptions& options) {
  // Names all options, so that one that is added does not compile until it is thought of here. The name is the graph's.
  const auto& [target, opt, bounds_checks, strict_math, reassociate, debug, check, threads, lanes, mappings, products, storage,
               disabled_passes, name, cache] = options;
  if (!cache.enabled || debug || !mappings.empty() || products != "f32" || storage != "f32") return {};  // those are a GPU's
  static const std::string build = lantern_build();
  if (build.empty()) return {};
  codegen::ContentHash hash;
  hash.add(staged_version).add(build).add(codegen::clang_version()).add(codegen::host_processor());
  for (const int n : {static_cast<int>(target), opt, clang_level(opt), static_cast<int>(bounds_checks),
                      static_cast<int>(strict_math), static_cast<int>(reassociate), static_cast<int>(check), threads, lanes,
                      static_cast<int>(disabled_passes.size())})
    hash.add(std::to_string(n));
  for (const std::string& pass : disabled_passes) hash.add(pass);
  hash.add(ir::encoded(staged));
  return hash.text();
}

std::optional<KeptProgram> kept_program(const std::string& key, const ClangOptions& options, const CodeCache& cache,
                                        std::span<const codegen::HostSymbol> symbols) {
  const auto directory = key.empty() ? std::nullopt : directory_of(cache);
  if (!directory) return std::nullopt;
  codegen::DiskCache disk(*directory, most_bytes);
  const auto entry = disk.load(staged_prefix + key);
  const auto pointer = entry ? pointer_of(*entry, key) : std::nullopt;
  if (!pointer) return std::nullopt;
  auto code = kept_code(disk, pointer->code, options, symbols);
  if (!code) return std::nullopt;
  return KeptProgram{std::move(code), pointer->facts};
}

std::unique_ptr<codegen::LoadedCode> compile_cached(std::span<const SourcePart> parts,
                                                    const ClangOptions& options, const CodeCache& cache,
                                                    std::span<const codegen::HostSymbol> symbols,
                                                    const StagedProgram& staged) {
  // Where debug information leads to depends on more than the text.
  const auto directory = cache.enabled && !options.debug_info ? directory_of(cache) : std::nullopt;
  if (!directory) return load_parts(compile_parts(parts, codegen::Language::c, options), options, symbols);
  codegen::DiskCache disk(*directory, most_bytes);
  const std::string key = key_of(parts, options);
  auto code = kept_code(disk, key, options, symbols);
  if (!code) {
    const std::vector<CompiledPart> made = compile_parts(parts, codegen::Language::c, options);
    disk.store(key, text_of(key, made));
    code = load_parts(made, options, symbols);
  }
  if (!staged.key.empty()) disk.store(staged_prefix + staged.key, program_text(staged, key));
  return code;
}

}  // namespace lantern::core::driver
