// Comments are not found in character constants, in strings and in raw strings.
#include "comments.hpp"

#include <algorithm>

#include "lantern/ir/text.hpp"

namespace lantern::tool {

using ir::is_word;

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::string read() {
    while (at_ < text_.size()) {
      if (starts("//")) line_comment();
      else if (starts("/*")) block_comment();
      else if (text_[at_] == '"') is_raw() ? raw_string() : quoted('"');
      else if (text_[at_] == '\'' && !separates_digits()) quoted('\'');
      else copy(1);
    }
    trim();
    while (!out_.empty() && out_.back() == '\n') out_.pop_back();
    return std::move(out_);
  }

 private:
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void copy(std::size_t n) {
    for (; n > 0 && at_ < text_.size(); --n, ++at_) {
      if (text_[at_] == '\n') trim();
      out_ += text_[at_];
    }
  }
  void trim() {
    while (!out_.empty() && (out_.back() == ' ' || out_.back() == '\t' || out_.back() == '\r')) out_.pop_back();
  }
  void blank() {
    const char c = text_[at_++];
    if (c == '\n') trim();
    out_ += c == '\n' || c == '\t' ? c : ' ';
  }
  /// A backslash at the end of the line continues it.
  void line_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      const bool continues = text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
      blank();
      if (continues) blank();
    }
  }
  void block_comment() {
    const std::size_t end = text_.find("*/", at_ + 2);
    const std::size_t to = end == std::string_view::npos ? text_.size() : end + 2;
    while (at_ < to) blank();
  }
  void quoted(char quote) {
    copy(1);
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') copy(text_[at_] == '\\' ? 2 : 1);
    if (at_ < text_.size() && text_[at_] == quote) copy(1);
  }
  /// Whether the quotation mark follows R, u8R, uR, UR or LR that is a word of its own.
  bool is_raw() const {
    std::size_t begin = at_;
    while (begin > 0 && is_word(text_[begin - 1])) --begin;
    const std::string_view prefix = text_.substr(begin, at_ - begin);
    return prefix == "R" || prefix == "u8R" || prefix == "uR" || prefix == "UR" || prefix == "LR";
  }
  void raw_string() {
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return copy(1);
    const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const std::size_t end = text_.find(close, open);
    // As it is: spaces at the ends of its lines are its own.
    const std::size_t to = end == std::string_view::npos ? text_.size() : end + close.size();
    out_ += text_.substr(at_, to - at_);
    at_ = to;
  }
  bool separates_digits() const {
    if (at_ == 0 || !is_word(text_[at_ - 1])) return false;
    std::size_t begin = at_;
    while (begin > 0 && (is_word(text_[begin - 1]) || text_[begin - 1] == '\'')) --begin;
    return ir::is_digit(text_[begin]);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string without_comments(std::string_view text) { return Reader(text).read(); }

}  // namespace lantern::tool
