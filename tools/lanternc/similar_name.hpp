// The name that a misspelt one may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lantern::tool {

/// ": did you mean NAME?" of the candidate that is nearest to what was written; nothing where none is near. Near is up to
/// one change for every three letters: a letter put in, left out, replaced, or exchanged with its neighbour (optimal
/// string alignment; Boytsov, "Indexing methods for approximate dictionary searching", 2011).
std::string did_you_mean(std::string_view written, std::span<const std::string> candidates);

}  // namespace lantern::tool
