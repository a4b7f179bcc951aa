// Native control flow over Rep in the user's files.
#pragma once

#include <optional>
#include <string>

#include "installation.hpp"
#include "options.hpp"

namespace lantern::tool {

/// A file's text with its native control flow over Rep rewritten; nothing where there is none. PlacedError:
/// it cannot be staged.
std::optional<std::string> rewritten(const std::string& source, const Options& options,
                                     const Installation& installation);

}  // namespace lantern::tool
