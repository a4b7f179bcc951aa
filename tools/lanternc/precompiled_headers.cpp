// A folder of the user's cache for each combination of flags: the header, what the compiler made of it, and
// the files that it read with their sizes and times.
#include "precompiled_headers.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "dependencies.hpp"
#include "lantern/codegen/toolchain/content_hash.hpp"
#include "lantern/codegen/toolchain/disk_cache.hpp"
#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/frontend/clang/precompiled.hpp"
#include "lantern/ir/text.hpp"

namespace lantern::tool {

namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

/// Some twenty: without optimisation or with it, with -g or without, is another.
constexpr std::uintmax_t header_megabytes = 2048;
constexpr std::string_view header_text =
    "#include \"lantern/compiler/frontend/native.hpp\"\n#include \"lantern/lantern.hpp\"\n";

/// A file as it is now.
std::string stamp(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
         std::to_string(status.st_mtim.tv_nsec);
}

/// The first of the stamps: how large the file was that the compiler has made.
std::string size_of_made(const fs::path& made) {
  std::error_code failed;
  return "made " + std::to_string(fs::file_size(made, failed));
}

/// Whether the file is whole that the compiler has made, and none that it was made from has changed.
bool fresh(const fs::path& made, const fs::path& stamps) {
  std::ifstream in(stamps);
  std::string line;
  bool any = false;
  if (!std::getline(in, line) || line != size_of_made(made)) return false;
  while (std::getline(in, line)) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos || stamp(line.substr(tab + 1)) != line.substr(0, tab)) return false;
    any = true;
  }
  return any;
}

struct HeaderPlace {
  fs::path header, made, stamps;
};

bool make(const Compiler& compiler, const Words& flags, const HeaderPlace& place) {
  const std::string mark = "." + std::to_string(::getpid()) + ".unfinished";
  const codegen::UnfinishedFile made(place.made.string() + mark), rule(place.stamps.string() + ".d" + mark),
      stamped(place.stamps.string() + mark);
  Words command = compiler.command;
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-w", "-MD", "-MF", rule.path().string(), "-MT", "header", "-x",
                                 "c++-header", "-o", made.path().string(), place.header.string()});
  const bool good = codegen::run_process(command).status == 0;
  std::string stamps;
  if (good)
    for (const std::string& file : read_dependencies(rule.path())) stamps += stamp(file) + "\t" + file + "\n";
  if (!good || stamps.empty()) return false;
  stamps.insert(0, size_of_made(made.path()) + "\n");
  std::error_code failed;
  fs::rename(made.path(), place.made, failed);
  if (failed) return false;
  codegen::write_file(stamped.path(), stamps);
  fs::rename(stamped.path(), place.stamps, failed);
  return !failed;
}

/// Whether an #include directive names a public header that is lantern.hpp or begins with it.
bool includes_lantern(std::string_view directive, const fs::path& include) {
  const std::size_t begin = directive.find("lantern/"), end = directive.find_first_of(">\"", std::min(begin, directive.size()));
  if (end == std::string_view::npos) return false;
  const fs::path name = directive.substr(begin, end - begin);
  if (name == "lantern/lantern.hpp") return true;
  if (name.parent_path() != "lantern") return false;
  std::ifstream in(include / name);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("#include \"lantern/lantern.hpp\"")) return true;
  return false;
}

/// The file that #include "NAME" names beside the one that it is in; empty where there is none.
fs::path beside(std::string_view directive, const fs::path& file) {
  const std::size_t begin = directive.find('"'), end = directive.find('"', begin + 1);
  if (end >= directive.size()) return {};
  const fs::path named = file.parent_path() / directive.substr(begin + 1, end - begin - 1);
  std::error_code none;
  return fs::is_regular_file(named, none) ? named : fs::path();
}

bool begins_with_includes(const fs::path& source, const fs::path& include, std::set<fs::path>& seen) {
  if (!seen.insert(source.lexically_normal()).second) return false;
  std::ifstream in(source);
  bool comment = false;
  std::string guard;  // #ifndef GUARD, then #define GUARD
  for (std::string line; std::getline(in, line);) {
    std::size_t first = line.find_first_not_of(" \t\r");
    while (comment || (first != std::string::npos && line.compare(first, 2, "/*") == 0)) {
      const std::size_t end = line.find("*/", comment ? 0 : first + 2);
      comment = end == std::string::npos;
      if (comment) break;
      first = line.find_first_not_of(" \t\r", end + 2);
      line.replace(0, end + 2, end + 2, ' ');
    }
    if (comment || first == std::string::npos || line.compare(first, 2, "//") == 0) continue;
    if (line[first] != '#') return false;
    const std::size_t word = line.find_first_not_of(" \t", first + 1);
    const std::string_view directive = std::string_view(line).substr(std::min(word, line.size()));
    if (directive.starts_with("line") || directive.starts_with("pragma once")) continue;
    if (directive.starts_with("ifndef ") && guard.empty()) {
      guard = ir::trimmed(directive.substr(7));
      continue;
    }
    if (directive.starts_with("define ") && ir::trimmed(directive.substr(7)) == guard) continue;
    if (!directive.starts_with("include")) return false;
    if (includes_lantern(directive, include)) return true;
    const fs::path own = beside(directive, source);
    if (!own.empty() && begins_with_includes(own, include, seen)) return true;
  }
  return false;
}

}  // namespace

bool begins_with_includes(const fs::path& source, const fs::path& include) {
  std::set<fs::path> seen;
  return begins_with_includes(source, include, seen);
}

Words flags_of_headers(const Compiler& compiler, const Words& flags) {
  // Another Clang compares its warnings and levels with those of the precompiled header.
  return compiler.is_clang ? frontend::without_other_directories(flags) : frontend::flags_of_headers(flags);
}

Words precompiled_headers(const Compiler& compiler, const Words& given, bool unusual, const fs::path& source,
                          const fs::path& include) {
  if (!frontend::all_begin_with(given, frontend::header_flags) || !begins_with_includes(source, include)) return {};
  const Words flags = flags_of_headers(compiler, given);
  const std::optional<fs::path> directory = codegen::private_cache_directory("headers");
  if (!directory) return {};
  codegen::ContentHash hash;
  hash.add(compiler.identity);
  frontend::add_header_flags(flags, hash);
  const std::string name = hash.text();
  const HeaderPlace place{*directory / (name + ".hpp"), *directory / (name + (compiler.is_clang ? ".pch" : ".hpp.gch")),
                          *directory / (name + ".files")};

  // Two compilations of one run may want the same.
  std::error_code failed;
  static std::mutex one_at_a_time;
  static std::mutex of_flags[2];
  std::mutex& mutex = of_flags[std::hash<std::string>{}(name) % 2];
  const std::lock_guard lock(mutex);
  if (!fs::exists(place.made, failed) || !fresh(place.made, place.stamps)) {
    // For flags of the user's own that may never come again it would be work in vain.
    if (unusual && !fs::exists(place.header, failed)) {
      codegen::write_file(place.header, std::string(header_text));
      return {};
    }
    {
      const std::lock_guard header_lock(one_at_a_time);
      if (!fs::exists(place.header, failed)) codegen::write_file(place.header, std::string(header_text));
    }
    if (!make(compiler, flags, place)) return {};
    codegen::remove_least_used(*directory, compiler.is_clang ? ".pch" : ".gch", codegen::cache_limit(header_megabytes));
  }
  fs::last_write_time(place.made, fs::file_time_type::clock::now(), failed);
  if (compiler.is_clang) return {"-include-pch", place.made.string()};
  return {"-include", place.header.string()};
}

}  // namespace lantern::tool
