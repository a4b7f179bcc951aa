// The reader of Penn-style treebanks: one pass over the characters, with a stack of open nodes.
#include "lantern/runtime/treebank.hpp"

#include <cctype>
#include <charconv>
#include <fstream>

#include "lantern/ir/error.hpp"

namespace lantern {

std::int64_t Vocabulary::add(std::string_view word) {
  const auto [at, added] = numbers_.try_emplace(std::string(word), size());
  if (added) words_.emplace_back(word);
  return at->second;
}

std::int64_t Vocabulary::find(std::string_view word) const {
  const auto at = numbers_.find(std::string(word));
  return at == numbers_.end() ? unknown : at->second;
}

namespace {

struct Place {
  std::size_t line = 1, column = 1;
};

/// A bracket, a word (or label), or the end of the text.
struct Token {
  enum Kind { open, close, word, end } kind = end;
  std::string text;
  Place at;
};

class Reader {
 public:
  Reader(std::istream& in, const std::string& name, Vocabulary& vocabulary, const TreebankOptions& options)
      : in_(in), name_(name), vocabulary_(vocabulary), options_(options) {}

  std::vector<LabelledTree> trees() {
    std::vector<LabelledTree> all;
    while (all.size() < options_.limit) {
      const Token token = next();
      if (token.kind == Token::end) break;
      if (token.kind != Token::open) fail(token, "'(' to begin a tree");
      all.push_back(tree(token));
    }
    return all;
  }

 private:
  /// A node whose closing bracket has not been seen.
  struct Node {
    Place at;
    std::int64_t label = 0;
    std::int64_t left = -1;
  };

  /// The tree whose opening bracket was read. Iterative: depth is the file's choice.
  LabelledTree tree(const Token& opening) {
    TreeBuilder<std::tuple<std::int64_t, std::int64_t>> builder;
    std::vector<Node> open{begin(opening)};
    for (;;) {
      const Token token = next();
      if (token.kind == Token::open) {
        open.push_back(begin(token));
        continue;
      }
      if (token.kind != Token::word || open.back().left >= 0)
        fail(token, open.back().left < 0 ? "a word or '('" : "'(' to begin a second child", open.back());
      const std::int64_t word =
          options_.new_words ? vocabulary_.add(token.text) : vocabulary_.find(token.text);
      std::int64_t done = builder.add({word, open.back().label});
      finish(open);
      // A second child completes its parent, and perhaps the parent's parent.
      while (!open.empty() && open.back().left >= 0) {
        done = builder.add({-1, open.back().label}, open.back().left, done);
        finish(open);
      }
      if (open.empty()) return builder.finish(done);
      open.back().left = done;
    }
  }

  Node begin(const Token& opening) {
    const Token token = next();
    std::int64_t label = -1;
    const char* last = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(token.text.data(), last, label);
    const bool number = token.kind == Token::word && error == std::errc() && stop == last;
    if (!number || label < 0 || label >= options_.labels)
      fail(token, "a label from 0 to " + std::to_string(options_.labels - 1));
    return {opening.at, label};
  }

  /// The closing bracket of the innermost open node.
  void finish(std::vector<Node>& open) {
    const Token token = next();
    if (token.kind != Token::close) fail(token, "')' to end the node", open.back());
    open.pop_back();
  }

  Token next() {
    int c = get();
    while (c == ' ' || c == '\t' || c == '\r' || c == '\n') c = get();
    Token token;
    token.at = place_;
    if (c == eof) return token;
    if (c == '(' || c == ')') {
      token.kind = c == '(' ? Token::open : Token::close;
      token.text = static_cast<char>(c);
      return token;
    }
    token.kind = Token::word;
    for (token.text = static_cast<char>(c); !ends_word(in_.peek());) token.text += static_cast<char>(get());
    return token;
  }

  static bool ends_word(int c) {
    return c == eof || c == '(' || c == ')' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
  }

  /// The next character, whose place becomes `place_`.
  int get() {
    place_ = after_;
    const int c = in_.get();
    if (c == '\n')
      after_ = {after_.line + 1, 1};
    else
      ++after_.column;
    return c;
  }

  [[noreturn]] void fail(const Token& token, const std::string& expected) const {
    throw Error(name_ + ":" + std::to_string(token.at.line) + ":" + std::to_string(token.at.column) +
                ": error: expected " + expected + ", got " +
                (token.kind == Token::end ? "the end of the file" : "'" + token.text + "'"));
  }
  [[noreturn]] void fail(const Token& token, const std::string& expected, const Node& node) const {
    fail(token, expected + " (begun at " + std::to_string(node.at.line) + ":" +
                    std::to_string(node.at.column) + ")");
  }

  static constexpr int eof = std::istream::traits_type::eof();

  std::istream& in_;
  const std::string& name_;
  Vocabulary& vocabulary_;
  const TreebankOptions& options_;
  Place place_, after_;
};

}  // namespace

std::vector<LabelledTree> read_treebank(std::istream& in, const std::string& name, Vocabulary& vocabulary,
                                        const TreebankOptions& options) {
  return Reader(in, name, vocabulary, options).trees();
}

std::vector<LabelledTree> read_treebank(const std::filesystem::path& file, Vocabulary& vocabulary,
                                        const TreebankOptions& options) {
  std::ifstream in(file);
  if (!in) throw Error(file.string() + ": error: cannot be opened");
  return read_treebank(in, file.string(), vocabulary, options);
}

namespace {

/// Numbers of a stream, with the line that the last one is in.
class Numbers {
 public:
  Numbers(std::istream& in, const std::string& name) : in_(in), name_(name) {}

  /// A number from `least` to below `end`.
  std::int64_t next(const std::string& what, std::int64_t least, std::int64_t end) {
    std::string word;
    int c = in_.get();
    for (; std::isspace(c) != 0; c = in_.get()) line_ += c == '\n';
    for (; c != std::istream::traits_type::eof() && std::isspace(c) == 0; c = in_.get()) word += static_cast<char>(c);
    if (c == '\n') in_.unget();
    std::int64_t number = 0;
    const char* const last = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), last, number);
    if (word.empty() || error != std::errc() || stop != last || number < least || number >= end)
      fail("expected " + what + ", got " + (word.empty() ? "the end of the file" : "'" + word + "'"));
    return number;
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(name_ + ":" + std::to_string(line_) + ": error: " + message);
  }

 private:
  std::istream& in_;
  const std::string& name_;
  int line_ = 1;
};

}  // namespace

std::vector<LabelledTree> read_tree_arrays(std::istream& in, const std::string& name, std::int64_t labels) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  Numbers numbers(in, name);
  std::vector<LabelledTree> all;
  for (std::int64_t left = numbers.next("the number of trees", 0, most); left > 0; --left) {
    const std::int64_t nodes = numbers.next("the number of a tree's nodes, 1 or more", 1, most);
    std::vector<std::int64_t> label, word, child[2];
    for (std::int64_t i = 0; i < nodes; ++i)
      label.push_back(numbers.next("a label from 0 to " + std::to_string(labels - 1), 0, labels));
    for (std::int64_t i = 0; i < nodes; ++i) word.push_back(numbers.next("the number of a word, or -1", -1, most));
    std::vector<bool> is_child(label.size());
    for (auto& side : child)
      for (std::int64_t i = 0; i < nodes; ++i) {
        const std::string expected = "a child from " + std::to_string(i + 1) + " to " + std::to_string(nodes - 1) + ", or -1";
        side.push_back(numbers.next(expected, -1, nodes));
        const std::int64_t c = side.back();
        if (c >= 0 && c <= i) numbers.fail("expected " + expected + ", got '" + std::to_string(c) + "'");
        if (c < 0) continue;
        if (is_child[static_cast<std::size_t>(c)])
          numbers.fail("expected every node to be the child of one, got node " + std::to_string(c) + " twice");
        is_child[static_cast<std::size_t>(c)] = true;
      }
    // The builder takes children first: numbers run the other way.
    TreeBuilder<std::tuple<std::int64_t, std::int64_t>> builder;
    const auto turned = [&](std::int64_t node) { return node < 0 ? -1 : nodes - 1 - node; };
    for (std::int64_t i = nodes - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      if (i > 0 && !is_child[at]) numbers.fail("expected every node to be the child of one, got node " + std::to_string(i) + " without a parent");
      builder.add({word[at], label[at]}, turned(child[0][at]), turned(child[1][at]));
    }
    all.push_back(builder.finish(nodes - 1));
  }
  return all;
}

std::vector<LabelledTree> read_tree_arrays(const std::filesystem::path& file, std::int64_t labels) {
  std::ifstream in(file);
  if (!in) throw Error(file.string() + ": error: cannot be opened");
  return read_tree_arrays(in, file.string(), labels);
}

}  // namespace lantern
