// What to write where g++ or Clang refuses a use of a Rep as if it were a value of C++, and where a header is missing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::tool {

/// The remedy for an error with these notes, as g++ or Clang words them; nothing where none is known. `line`: the line
/// of the program where it is. `include`: the folder of Lantern's headers, where functions that are not declared are
/// looked for; empty: nowhere.
std::optional<std::string> remedy(std::string_view error, const std::vector<std::string_view>& notes, std::string_view line,
                                  const std::string& include);

/// The types of an error about a[i], without aliases.
struct Indexing {
  std::string_view container, index;
  std::string_view shown;  ///< the container, as the compiler writes it
};
/// Nothing where the error is another one. The index is empty where the compiler does not name it.
std::optional<Indexing> indexing(std::string_view error, const std::vector<std::string_view>& notes);
/// Whether a type is a Rep itself; a container of Reps is none.
bool is_rep(std::string_view type);

}  // namespace lantern::tool
