// Comments are found line by line: the source compiles, so that no more than its layout has to be understood.
#include "doc_comment.hpp"

#include <filesystem>
#include <regex>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"

namespace lantern::tool {

namespace {

using Lines = std::vector<std::string>;

Lines lines_of(std::string_view text) {
  Lines lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/// A line of a comment without what marks it as one.
std::string content(std::string line) {
  line = trimmed(line);
  for (const std::string mark : {"///<", "///", "//!", "//", "/**", "/*", "*"})
    if (line.starts_with(mark) && line != "*/") {
      line.erase(0, mark.size());
      break;
    }
  if (line.ends_with("*/")) line.erase(line.size() - 2);
  return trimmed(line);
}

/// The comment whose last line is just before number `at`, counted from 0.
std::string comment_above(const Lines& lines, std::size_t at) {
  std::size_t first = at;
  if (at > 0 && trimmed(lines[at - 1]).ends_with("*/")) {
    while (first > 0 && lines[first - 1].find("/*") == std::string::npos) --first;
    if (first == 0 || !trimmed(lines[first - 1]).starts_with("/*")) return {};
    --first;
  } else {
    while (first > 0 && trimmed(lines[first - 1]).starts_with("//")) --first;
  }
  std::string text;
  for (std::size_t i = first; i < at; ++i) text += (i > first ? "\n" : "") + content(lines[i]);
  while (text.starts_with("\n")) text.erase(0, 1);
  while (text.ends_with("\n")) text.pop_back();
  return text;
}

/// What is between the first comma and the parenthesis that closes LANTERN_FUNCTION(.
std::string program_of(const Lines& lines, std::size_t at) {
  constexpr std::size_t most_lines = 20;
  std::string text;
  for (std::size_t i = at; i < std::min(lines.size(), at + most_lines); ++i) text += (i > at ? " " : "") + trimmed(lines[i]);
  const std::size_t begin = text.find("LANTERN_FUNCTION("), comma = text.find(',', begin);
  if (begin == std::string::npos || comma == std::string::npos) return {};
  int depth = 1;
  for (std::size_t i = comma; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (depth > 0) continue;
    std::string program = trimmed(text.substr(comma + 1, i - comma - 1));
    if (program.starts_with("(") && program.ends_with(")")) program = program.substr(1, program.size() - 2);
    return program;
  }
  return {};
}

/// Where a function or an object of that name is defined at the beginning of a line; lines.size() if nowhere.
std::size_t definition(const Lines& lines, const std::string& name) {
  const std::regex pattern("^[A-Za-z_].*[ &*>]" + name + R"(( =|\(|\{).*)");
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].size() < 400 && !lines[i].starts_with("LANTERN_FUNCTION") && std::regex_match(lines[i], pattern)) {
      while (i > 0 && lines[i - 1].starts_with("template")) --i;
      return i;
    }
  return lines.size();
}

}  // namespace

Documentation documentation(std::string_view source, std::size_t line) {
  const Lines lines = lines_of(source);
  if (line == 0 || line > lines.size()) return {};
  const std::size_t at = line - 1;
  Documentation found{program_of(lines, at), comment_above(lines, at)};
  if (!found.comment.empty()) return found;
  const std::size_t close = lines[at].rfind(')');
  const std::size_t behind = close == std::string::npos ? close : lines[at].find("//", close);
  if (behind != std::string::npos) {
    found.comment = content(lines[at].substr(behind));
    return found;
  }
  static const std::regex word("[A-Za-z_][A-Za-z_0-9]*");
  std::string last;
  for (std::sregex_iterator i(found.program.begin(), found.program.end(), word), end; i != end; ++i) last = i->str();
  if (last.empty()) return found;
  if (const std::size_t where = definition(lines, last); where < lines.size())
    found.comment = comment_above(lines, where);
  return found;
}

Documentation documentation(const ir::Location& loc) {
  std::error_code ignored;
  if (!loc.file || !std::filesystem::is_regular_file(loc.file, ignored)) return {};
  return documentation(codegen::read_file(loc.file), loc.line);
}

}  // namespace lantern::tool
