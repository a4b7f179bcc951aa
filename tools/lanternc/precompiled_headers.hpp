// Lantern's headers for the system's compiler, parsed once: they are most of what a model's compilation
// costs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compiler.hpp"

namespace lantern::tool {

/// Whether nothing but comments and includes is before the first include of lantern/lantern.hpp, or of a header that
/// includes it: one of Lantern's, or one beside the file that begins in this way itself. `include`: where Lantern's headers are.
bool begins_with_includes(const std::filesystem::path& source, const std::filesystem::path& include);

/// The flags that a precompiled header depends on. g++ takes one that was made at another level of optimisation, but not at -O0
/// or -Os, and with other warnings.
std::vector<std::string> flags_of_headers(const Compiler& compiler, const std::vector<std::string>& flags);

/// Arguments that make the compiler begin with Lantern's precompiled headers; none where that could change what the file
/// means: where begins_with_includes says no, or `flags` hold others than -I, -isystem, -D, -U, -std=, -W, -f, -m, -O and
/// -g. The headers are compiled where that has not been done for these flags, or a header has changed since. Kept as
/// described in codegen/toolchain/disk_cache.hpp; the last used ones are kept, as many megabytes as LANTERN_CACHE_MEGABYTES
/// says, otherwise 2048. `unusual`: the user gave flags that headers depend on; then the headers are compiled when the same flags come
/// a second time.
std::vector<std::string> precompiled_headers(const Compiler& compiler, const std::vector<std::string>& flags,
                                             bool unusual, const std::filesystem::path& source,
                                             const std::filesystem::path& include);

}  // namespace lantern::tool
