/// \file
/// Text: classes of ASCII characters whatever the locale, identifiers of C, replacement.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace lantern::ir {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
/// Whether `c` may be part of an identifier.
constexpr bool is_word(char c) { return is_digit(c) || is_letter(c) || c == '_'; }

/// Whether `s` has the form of an identifier.
constexpr bool is_identifier(std::string_view s) {
  return !s.empty() && !is_digit(s.front()) && std::ranges::all_of(s, is_word);
}

/// Where the word ends that `text` has at `at`: `at` where it has none.
constexpr std::size_t end_of_word(std::string_view text, std::size_t at) {
  while (at < text.size() && is_word(text[at])) ++at;
  return at;
}

/// `s` without the white space at its ends.
constexpr std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

/// `text` with `to` in the place of each `from`.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace lantern::ir
