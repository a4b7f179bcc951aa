// Lantern's headers, parsed once: most of the time that parsing a user's file takes is theirs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lantern::frontend {

/// What Clang is run for. In reading, the headers show native control flow as it is written (LANTERN_FRONTEND).
enum class Purpose { reading, compiling };

/// Where the precompiled header for these arguments is kept; it is made where it is missing or older than the
/// headers. Nothing where there is no place to keep it, or where the arguments may change what headers mean.
/// Kept in $XDG_CACHE_HOME/lantern or ~/.cache/lantern, a private directory; a few are kept.
std::optional<std::string> precompiled_headers(Purpose purpose, const std::vector<std::string>& arguments);

/// Writes a header as a precompiled one; false where it has errors.
bool precompile(const std::string& header, Purpose purpose, const std::vector<std::string>& arguments,
                const std::string& to);

}  // namespace lantern::frontend
