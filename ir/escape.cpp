// A text is read character by character; what is not printable UTF-8 goes byte by byte.
#include "lantern/ir/escape.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lantern::ir {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

/// How many bytes a character of UTF-8 has, by its first; 0 where no character begins so.
std::size_t length(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

/// The characters that have no shape of their own, or turn the text that follows around.
bool shapeless(std::uint32_t c) {
  constexpr std::array<std::array<std::uint32_t, 2>, 7> ranges{{{0, 0x1F},
                                                                {0x7F, 0x9F},
                                                                {0x200E, 0x200F},
                                                                {0x2028, 0x202E},
                                                                {0x2066, 0x2069},
                                                                {0xD800, 0xDFFF},
                                                                {0xFFFE, 0xFFFF}}};
  return std::ranges::any_of(ranges, [&](const auto& r) { return c >= r[0] && c <= r[1]; });
}

/// The character at the beginning of a text; empty where none is, or none that is printed.
std::string_view printable(std::string_view text) {
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t n = length(byte(0));
  if (n == 0 || n > text.size()) return {};
  std::uint32_t c = n == 1 ? byte(0) : byte(0) & (0x7FU >> n);
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    c = (c << 6U) | (byte(i) & 0x3FU);
  }
  if (c < least[n] || c > 0x10FFFF || shapeless(c)) return {};
  return text.substr(0, n);
}

/// `shown` is given each printable character, `other` each byte that belongs to none.
template <class Shown, class Other>
void read(std::string_view text, Shown shown, Other other) {
  while (!text.empty()) {
    const std::string_view c = printable(text);
    c.empty() ? other(text.front()) : shown(c);
    text.remove_prefix(std::max<std::size_t>(c.size(), 1));
  }
}

/// Control characters as blanks, other bytes that no character is made of as U+FFFD.
std::string in_one_line(std::string_view text) {
  std::string s;
  read(
      text, [&](std::string_view c) { s += c; },
      [&](char c) { static_cast<unsigned char>(c) < 0x80 ? s += ' ' : s += replacement; });
  return s;
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size() - 1)
    text.replace(at, from.size(), to);
}

}  // namespace

std::string c_string(std::string_view text) {
  std::string s = "\"";
  read(
      text,
      [&](std::string_view c) {
        // Of two question marks the second, because of trigraphs.
        if (c == "\"" || c == "\\" || (c == "?" && s.back() == '?')) s += '\\';
        s += c;
      },
      [&](char c) {
        const auto u = static_cast<unsigned char>(c);
        s += {'\\', static_cast<char>('0' + (u >> 6U)), static_cast<char>('0' + ((u >> 3U) & 7U)),
              static_cast<char>('0' + (u & 7U))};
      });
  return s + "\"";
}

std::string c_line_comment(std::string_view text) {
  std::string s = in_one_line(text);
  replace(s, "??", "? ?");  // \?\?/ is a backslash
  while (!s.empty() && (s.back() == '\\' || s.back() == ' ')) s.pop_back();
  return s;
}

std::string c_block_comment(std::string_view text) {
  std::string s = c_line_comment(text);
  replace(s, "*/", "* /");
  replace(s, "/*", "/ *");
  if (s.ends_with('*')) s += ' ';
  return s;
}

std::string markup(std::string_view text) {
  std::string s;
  read(
      text,
      [&](std::string_view c) {
        if (c == "&")
          s += "&amp;";
        else if (c == "<")
          s += "&lt;";
        else if (c == ">")
          s += "&gt;";
        else if (c == "\"")
          s += "&quot;";
        else
          s += c;
      },
      [&](char c) {
        if (c == '\t' || c == '\n')
          s += c;
        else
          static_cast<unsigned char>(c) < 0x80 ? s += ' ' : s += replacement;
      });
  return s;
}

}  // namespace lantern::ir
