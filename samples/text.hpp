// A text for character models: its characters as numbers, parts of it side by side.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <lantern/runtime/tensor.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace characters {

using lantern::TensorValue;

/// Shakespeare, sonnet 18.
inline constexpr const char* sonnet =
    "Shall I compare thee to a summer's day?\n"
    "Thou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\n"
    "And summer's lease hath all too short a date:\n"
    "Sometime too hot the eye of heaven shines,\n"
    "And often is his gold complexion dimm'd;\n"
    "And every fair from fair sometime declines,\n"
    "By chance or nature's changing course untrimm'd;\n"
    "But thy eternal summer shall not fade\n"
    "Nor lose possession of that fair thou owest;\n"
    "Nor shall Death brag thou wander'st in his shade,\n"
    "When in eternal lines to time thou growest:\n"
    "So long as men can breathe or eyes can see,\n"
    "So long lives this and this gives life to thee.\n";

/// What a file has. Error: it has nothing, or there is none.
inline std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.empty()) throw lantern::Error("expected a text, found none in " + file.string());
  return text;
}

/// A text as numbers of its characters, from 0 on in their order. It goes round: after the end comes the
/// start.
class Text {
 public:
  explicit Text(const std::string& text) {
    std::map<char, std::int64_t> numbers;
    for (const char c : text) numbers[c];
    for (auto& [c, number] : numbers) {
      number = static_cast<std::int64_t>(characters_.size());
      characters_ += c;
    }
    for (const char c : text) codes_.push_back(numbers[c]);
  }
  std::int64_t characters() const { return static_cast<std::int64_t>(characters_.size()); }
  std::size_t size() const { return codes_.size(); }
  std::int64_t code(std::size_t i) const { return codes_[i % codes_.size()]; }
  std::string characters_of(const std::vector<std::int64_t>& codes) const {
    std::string s;
    for (const std::int64_t c : codes) s += characters_[static_cast<std::size_t>(c)];
    return s;
  }
  /// Texts side by side, each from another place of this one on, which goes round: `from` before `to`.
  void part(std::size_t position, TensorValue<std::int64_t>& from, TensorValue<std::int64_t>& to) const {
    const auto steps = static_cast<std::size_t>(from.shape[0]),
               texts = static_cast<std::size_t>(from.shape[1]);
    for (std::size_t t = 0; t < steps; ++t)
      for (std::size_t k = 0; k < texts; ++k) {
        from[t * texts + k] = code(k * size() / texts + position + t);
        to[t * texts + k] = code(k * size() / texts + position + t + 1);
      }
  }

 private:
  std::string characters_;
  std::vector<std::int64_t> codes_;
};

/// Which part of the words of a text are words of another one.
inline double known_words(const std::string& text, const std::string& other) {
  std::istringstream in(other);
  const std::set<std::string> words{std::istream_iterator<std::string>(in), {}};
  std::istringstream all(text);
  double known = 0, count = 0;
  for (std::string word; all >> word; ++count) known += words.contains(word) ? 1 : 0;
  return count == 0 ? 0 : known / count;
}

}  // namespace characters
