// A mark is the offset between two control characters, which no source holds.
#include "lantern/compiler/frontend/clang/lines.hpp"

#include <algorithm>
#include <vector>

namespace lantern::frontend {

namespace {
constexpr char open_mark = '\x01', close_mark = '\x02';
constexpr std::uint32_t few_lines = 3;  // newlines read better than a directive
}  // namespace

std::string mark_line(std::uint32_t offset) { return open_mark + std::to_string(offset) + close_mark; }

std::string quoted_path(const std::string& path) {
  std::string out = "\"";
  for (const char c : path) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string resolve_lines(std::string_view marked, std::string_view original, const std::string& path) {
  std::vector<std::uint32_t> starts{0};
  for (std::uint32_t i = 0; i < original.size(); ++i)
    if (original[i] == '\n') starts.push_back(i + 1);
  const auto line_of = [&](std::uint32_t offset) {
    return static_cast<std::uint32_t>(std::upper_bound(starts.begin(), starts.end(), offset) -
                                      starts.begin());
  };
  std::string out;
  std::uint32_t line = 1;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i] != open_mark) {
      line += marked[i] == '\n' ? 1 : 0;
      out += marked[i];
      continue;
    }
    const std::size_t end = marked.find(close_mark, i);
    const auto offset =
        static_cast<std::uint32_t>(std::stoul(std::string(marked.substr(i + 1, end - i - 1))));
    const std::uint32_t wanted = line_of(offset);
    i = end;
    if (wanted == line) continue;
    while (out.ends_with(' ')) out.pop_back();
    if (wanted > line && wanted - line <= few_lines)
      out.append(wanted - line, '\n');
    else
      out += "\n#line " + std::to_string(wanted) + " " + quoted_path(path) + "\n";
    line = wanted;
    const std::string_view before = original.substr(starts[wanted - 1], offset - starts[wanted - 1]);
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
