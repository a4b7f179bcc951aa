// Keeps the user's line numbers in rewritten text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lantern::frontend {

/// A mark in rewritten text: what follows was at this place of the original.
std::string mark_line(std::uint32_t offset);

/// A mark before text that is copied from this place of the original: columns can be told back.
std::string mark_copy(std::uint32_t offset);

/// Whether text begins so, marks before it aside.
bool begins_with(std::string_view marked, char c);

/// From a place in rewritten text on (its line as #line directives count, its column), the text is that of
/// the original from `offset` on; or none of the original's.
struct Copied {
  std::uint32_t line = 1, column = 1;
  std::optional<std::uint32_t> offset;
};
/// Where a place of the rewritten text was in the original; nothing for text that the rewriter made.
std::optional<std::uint32_t> original_offset(const std::vector<Copied>& copies, std::uint32_t line,
                                             std::uint32_t column);

/// Text with marks, beginning at line 1 of the original: each mark is taken out, and where the line would be
/// another than the original's, newlines or a #line directive are put in.
std::string resolve_lines(std::string_view marked, std::string_view original, const std::string& path,
                          std::vector<Copied>& copies);

/// Line and column (from 1) of an offset.
struct LineColumn {
  std::uint32_t line = 1, column = 1;
};
LineColumn line_column(std::string_view text, std::uint32_t offset);
/// The line that an offset is on, without its newline.
std::string_view line_at(std::string_view text, std::uint32_t offset);

}  // namespace lantern::frontend
