// What tests ask of printed code.
#pragma once

#include <cstddef>
#include <string_view>

namespace lantern::test {

/// How often `what` stands in `text`.
inline std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// How many loops the text of an IR has, parallel ones among them.
inline std::size_t loops_in(std::string_view ir) { return count(ir, "= loop") + count(ir, "= parallel"); }

}  // namespace lantern::test
