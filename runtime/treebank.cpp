// The reader of Penn-style treebanks: one pass over the characters, with a stack of open nodes.
#include "lantern/runtime/treebank.hpp"

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

}  // namespace lantern
