// Lantern's headers, parsed once: most of the time that parsing a user's file takes is theirs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lantern::frontend {

/// Where the precompiled header for these arguments is kept; it is made where it is missing or older than the
/// headers. Nothing where there is no place to keep it, or where the arguments may change what headers mean.
/// Kept in $XDG_CACHE_HOME/lantern or ~/.cache/lantern, a private directory; a few are kept.
std::optional<std::string> precompiled_headers(const std::vector<std::string>& arguments);

}  // namespace lantern::frontend
