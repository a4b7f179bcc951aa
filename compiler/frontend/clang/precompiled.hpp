// Lantern's headers, parsed once: most of the time that parsing a user's file takes is theirs.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lantern/codegen/toolchain/content_hash.hpp"

namespace lantern::frontend {

/// What Clang is run for. In reading, the headers show native control flow as it is written (LANTERN_FRONTEND).
enum class Purpose { reading, compiling };

/// Whether each of these flags, or the first word of a flag in two, begins with one of the prefixes.
bool all_begin_with(const std::vector<std::string>& flags, std::span<const std::string_view> prefixes);

/// Prefixes of the flags whose words say all that they mean for headers.
inline constexpr std::array<std::string_view, 10> header_flags{"-I", "-isystem", "-D", "-U", "-std=", "-W", "-f", "-m", "-O", "-g"};

/// Included once more after a precompiled header: what LANTERN_FUNCTION adds to its definition.
inline constexpr const char* mode_header = "lantern/compiler/driver/function_mode.hpp";

/// The flags that say what the headers mean: without warnings, with one level for -O1 to -O3 (the last one counts), and
/// without directories that hold no header of a name that Lantern's or the standard library's include.
std::vector<std::string> flags_of_headers(const std::vector<std::string>& flags);

/// Adds such flags, and the directory where the compiler runs if one of them depends on it.
void add_header_flags(const std::vector<std::string>& flags, codegen::ContentHash& hash);

/// The flags without such directories.
std::vector<std::string> without_other_directories(const std::vector<std::string>& flags);

/// Where the precompiled header for these arguments is kept; it is made where it is missing or older than the
/// headers. Nothing where there is no place to keep it, or where the arguments may change what headers mean.
/// Kept as described in codegen/toolchain/disk_cache.hpp: those that were used last, as many megabytes as
/// LANTERN_CACHE_MEGABYTES says, otherwise 512.
std::optional<std::string> precompiled_headers(Purpose purpose, const std::vector<std::string>& arguments);

/// Removes one that is of no use, so that it is made again.
void discard(const std::string& precompiled);

/// Writes a header as a precompiled one; false where it has errors.
bool precompile(const std::string& header, Purpose purpose, const std::vector<std::string>& arguments,
                const std::string& to);

}  // namespace lantern::frontend
