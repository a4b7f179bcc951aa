// Reading the text: comments and literals are blanked out first, so that brackets and semicolons are what
// they seem.
#include "lantern/compiler/staging/source_text.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <system_error>
#include <unordered_map>

#include "lantern/ir/text.hpp"

namespace lantern::core {

using ir::is_identifier;
using ir::is_space;
using ir::is_word;
using ir::trimmed;

namespace {

constexpr std::size_t largest_file = 4U << 20;

std::size_t skip_spaces(std::string_view s, std::size_t at) {
  while (at < s.size() && is_space(s[at])) ++at;
  return at;
}

bool is_statement_keyword(std::string_view word) {
  constexpr std::array words{"if", "while", "for", "switch", "catch", "return", "constexpr"};
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

SourceText::SourceText(std::string text, const std::string& file) : text_(std::move(text)) {
  lines_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') lines_.push_back(i + 1);
  find_headers(file);
  blank();
  find_bodies();
  find_assignments();
  types_ = named_types(text_);
}

/// By the lines that begin with #include "...".
void SourceText::find_headers(const std::string& file) {
  for (const std::size_t begin : lines_) {
    std::string_view line = trimmed(std::string_view(text_).substr(begin, text_.find('\n', begin) - begin));
    if (!line.starts_with('#')) continue;
    line = trimmed(line.substr(1));
    if (!line.starts_with("include")) continue;
    const std::size_t open = line.find('"'), close = line.rfind('"');
    if (open == std::string_view::npos || close == open) continue;
    const std::filesystem::path name(line.substr(open + 1, close - open - 1));
    headers_.push_back((std::filesystem::path(file).parent_path() / name).string());
  }
}

const NamedType* SourceText::find_type(const std::string& name, int depth) const {
  constexpr int furthest = 4;
  if (const auto it = types_.find(name); it != types_.end()) return &it->second;
  if (depth == furthest) return nullptr;
  for (const std::string& header : headers_)
    if (const auto text = of(header.c_str()))
      if (const NamedType* found = text->find_type(name, depth + 1)) return found;
  return nullptr;
}

std::vector<SourceText::Parameter> SourceText::values(const std::vector<Parameter>& parameters) const {
  std::vector<Parameter> all;
  for (const Parameter& p : parameters)
    for (Parameter& v : values_of(p, [this](const std::string& name) { return find_type(name); }))
      all.push_back(std::move(v));
  return all;
}

std::shared_ptr<const SourceText> SourceText::of(const char* file) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::shared_ptr<const SourceText>> known;
  const std::lock_guard lock(mutex);
  const auto [it, added] = known.try_emplace(file);
  if (added) {
    std::error_code no;
    const std::uintmax_t size = std::filesystem::file_size(file, no);
    std::string text;
    if (!no && size <= largest_file)  // a place may name a file of another kind, such as a model
      if (std::ifstream stream(file, std::ios::binary); stream) text.assign(std::istreambuf_iterator<char>(stream), {});
    if (!text.empty() && text.find('\0') == std::string::npos)
      it->second = std::make_shared<SourceText>(std::move(text), file);
  }
  return it->second;
}

TextRange SourceText::line(std::uint32_t number) const {
  if (number == 0 || number > lines_.size()) return {};
  const std::size_t begin = lines_[number - 1];
  return {begin, number < lines_.size() ? lines_[number] - 1 : text_.size()};
}

void SourceText::blank() {
  const auto erase = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, text_.size()); ++i)
      if (text_[i] != '\n') text_[i] = ' ';
  };
  const auto until = [&](std::string_view what, std::size_t from) {
    const std::size_t at = text_.find(what, from);
    return at == std::string::npos ? text_.size() : at;
  };
  for (std::size_t i = 0; i < text_.size(); ++i) {
    const char c = text_[i];
    const bool starts_line = c == '#' && trimmed(std::string_view(text_).substr(
                                                     *std::prev(std::ranges::upper_bound(lines_, i)),
                                                     i - *std::prev(std::ranges::upper_bound(lines_, i))))
                                             .empty();
    std::size_t end = i;
    if (starts_line || text_.compare(i, 2, "//") == 0) {
      end = until("\n", i);
    } else if (text_.compare(i, 2, "/*") == 0) {
      end = until("*/", i + 2) + 2;
    } else if (c == '"' && i > 0 && text_[i - 1] == 'R') {
      const std::size_t open = until("(", i);
      const std::string close = ")" + text_.substr(i + 1, open - i - 1) + "\"";
      end = until(close, open) + close.size();
    } else if (c == '"' || (c == '\'' && (i == 0 || !is_word(text_[i - 1])))) {
      for (end = i + 1; end < text_.size() && text_[end] != c && text_[end] != '\n'; ++end)
        if (text_[end] == '\\') ++end;
      ++end;
    }
    if (end == i) continue;
    erase(i, end);
    i = end - 1;
  }
}

std::size_t SourceText::closed(std::size_t open) const {
  int depth = 0;
  for (std::size_t i = open; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth == 0) return i + 1;
  }
  return text_.size();
}

void SourceText::find_bodies() {
  for (std::size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '{') find_body(i);
  std::ranges::sort(bodies_, {}, [](const Body& b) { return b.range.begin; });
}

/// A brace opens a body where a parameter list is before it, with at most qualifiers and a result type
/// between.
bool SourceText::find_body(std::size_t brace) {
  std::size_t close = brace;
  while (close > 0 && text_[close - 1] != ')') {
    const char c = text_[--close];
    if (!is_word(c) && !is_space(c) && std::string_view("<>:,*&-").find(c) == std::string_view::npos)
      return false;
  }
  if (close == 0) return false;
  std::size_t open = close;
  for (int depth = 0; open > 0;) {
    const char c = text_[--open];
    depth += c == ')' ? 1 : c == '(' ? -1 : 0;
    if (depth == 0) break;
  }
  std::size_t end = open;
  while (end > 0 && is_space(text_[end - 1])) --end;
  std::size_t word = end;
  while (word > 0 && is_word(text_[word - 1])) --word;
  if (is_statement_keyword(std::string_view(text_).substr(word, end - word))) return false;
  Body body{{open, closed(brace)}, {}};
  for (const std::string_view p : parts_of_list(std::string_view(text_).substr(open + 1, close - open - 2)))
    body.parameters.push_back(declared(p));
  bodies_.push_back(std::move(body));
  return true;
}

void SourceText::find_assignments() {
  find_assignment(0);
  for (std::size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == ';' || text_[i] == '{' || text_[i] == '}' || text_[i] == ')') find_assignment(i + 1);
}

void SourceText::find_assignment(std::size_t start) {
  const std::string_view all = text_;
  start = skip_spaces(all, start);
  const std::size_t equals = all.find_first_of("=;{}()", start);
  if (equals == std::string_view::npos || equals == start || all[equals] != '=' ||
      all.substr(equals, 2) == "==")
    return;
  std::string_view left = trimmed(all.substr(start, equals - start));
  if (left.empty() || std::string_view("!<>").find(all[equals - 1]) != std::string_view::npos) return;
  while (!left.empty() && std::string_view("+-*/%").find(left.back()) != std::string_view::npos)
    left = trimmed(left.substr(0, left.size() - 1));
  Assignment a;
  if (left.ends_with(']')) {  // auto [a, b], not v[i]
    const std::size_t open = left.find('[');
    std::string_view type = trimmed(left.substr(0, open));
    while (type.ends_with('&')) type = trimmed(type.substr(0, type.size() - 1));
    if (!type.ends_with("auto")) return;
    for (const std::string_view name : parts_of_list(left.substr(open + 1, left.size() - open - 2)))
      a.names.emplace_back(name);
    if (a.names.empty()) return;
  } else {
    const Parameter p = declared(left);
    const std::string name = p.name.empty() ? p.type : p.name;
    if (!is_identifier(name) || p.type == "using" || p.type == "return") return;
    a.names.push_back(name);
  }
  std::size_t end = equals;
  for (; end < all.size() && std::string_view(";,)}").find(all[end]) == std::string_view::npos; ++end)
    if (all[end] == '(' || all[end] == '[' || all[end] == '{') end = closed(end) - 1;
  a.range = {start, std::min(end + 1, all.size())};
  if (const std::string_view right = trimmed(all.substr(equals + 1, end - equals - 1)); is_identifier(right)) a.value = right;
  assignments_.push_back(std::move(a));
  if (end < all.size() && all[end] == ',') find_assignment(end + 1);  // double x = 1, y = 2;
}

}  // namespace lantern::core
