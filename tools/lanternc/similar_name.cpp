// Distances between names by dynamic programming.
#include "similar_name.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace lantern::tool {

namespace {

std::size_t changes(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view written, std::span<const std::string> candidates) {
  std::size_t least = written.size() / 4 + 1;
  const std::string* nearest = nullptr;
  for (const std::string& name : candidates)
    if (const std::size_t n = changes(written, name); n < least) least = n, nearest = &name;
  return nearest == nullptr ? "" : ": did you mean " + *nearest + "?";
}

}  // namespace lantern::tool
