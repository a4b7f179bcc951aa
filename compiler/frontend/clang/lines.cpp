// A mark is the offset between two control characters, which no source holds.
#include "lantern/compiler/frontend/clang/lines.hpp"

#include <algorithm>
#include <vector>

#include "lantern/ir/escape.hpp"

namespace lantern::frontend {

namespace {
constexpr char open_mark = '\x01', close_mark = '\x02', open_copy = '\x03';
constexpr std::uint32_t few_lines = 3;  // newlines read better than a directive
}  // namespace

std::string mark_line(std::uint32_t offset) { return open_mark + std::to_string(offset) + close_mark; }

std::string mark_copy(std::uint32_t offset) { return open_copy + std::to_string(offset) + close_mark; }

bool begins_with(std::string_view marked, char c) {
  while (!marked.empty() && (marked.front() == open_mark || marked.front() == open_copy))
    marked.remove_prefix(std::min(marked.find(close_mark), marked.size() - 1) + 1);
  return !marked.empty() && marked.front() == c;
}

std::optional<std::uint32_t> original_offset(const std::vector<Copied>& copies, std::uint32_t line,
                                             std::uint32_t column) {
  // The last one wins: a line that was moved behind others has the same number again.
  const Copied* best = nullptr;
  for (const Copied& c : copies)
    if (c.line == line && c.column <= column && (best == nullptr || best->column <= c.column)) best = &c;
  if (best == nullptr || !best->offset) return std::nullopt;
  return *best->offset + (column - best->column);
}

std::string resolve_lines(std::string_view marked, std::string_view original, const std::string& path,
                          std::vector<Copied>& copies) {
  std::vector<std::uint32_t> starts{0};
  for (std::uint32_t i = 0; i < original.size(); ++i)
    if (original[i] == '\n') starts.push_back(i + 1);
  const auto line_of = [&](std::uint32_t offset) {
    return static_cast<std::uint32_t>(std::upper_bound(starts.begin(), starts.end(), offset) -
                                      starts.begin());
  };
  std::string out;
  std::uint32_t line = 1;
  std::size_t line_start = 0;            // in `out`
  std::optional<std::uint32_t> copying;  // from where in the original
  const auto note = [&] {
    copies.push_back({line, static_cast<std::uint32_t>(out.size() - line_start + 1), copying});
  };
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i] != open_mark && marked[i] != open_copy) {
      if (copying && (*copying >= original.size() || original[*copying] != marked[i])) {
        copying.reset();
        note();
      }
      out += marked[i];
      if (copying) ++*copying;
      if (marked[i] != '\n') continue;
      ++line;
      line_start = out.size();
      note();
      continue;
    }
    const std::size_t end = marked.find(close_mark, i);
    const auto offset =
        static_cast<std::uint32_t>(std::stoul(std::string(marked.substr(i + 1, end - i - 1))));
    const bool copy = marked[i] == open_copy;
    i = end;
    if (copy) {
      copying = offset;
      note();
      continue;
    }
    const std::uint32_t wanted = line_of(offset);
    copying.reset();
    if (wanted == line) continue;
    while (out.ends_with(' ')) out.pop_back();
    if (wanted > line && wanted - line <= few_lines)
      out.append(wanted - line, '\n');
    else
      out += "\n#line " + std::to_string(wanted) + " " + ir::c_string(path) + "\n";
    line = wanted;
    const std::string_view before = original.substr(starts[wanted - 1], offset - starts[wanted - 1]);
    line_start = out.rfind('\n') + 1;
    if (before.find_first_not_of(" \t") == std::string_view::npos) out += before;
  }
  return out;
}

LineColumn line_column(std::string_view text, std::uint32_t offset) {
  LineColumn at;
  for (std::uint32_t i = 0; i < offset && i < text.size(); ++i) {
    ++at.column;
    if (text[i] == '\n') ++at.line, at.column = 1;
  }
  return at;
}

std::string_view line_at(std::string_view text, std::uint32_t offset) {
  const std::size_t newline = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  return text.substr(begin, std::min(text.find('\n', offset), text.size()) - begin);
}

}  // namespace lantern::frontend
