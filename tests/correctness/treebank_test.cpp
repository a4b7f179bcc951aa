// The treebank reader: trees, words, and what it says about a malformed file.
#include "lantern/runtime/treebank.hpp"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

#include "lantern/ir/error.hpp"

using namespace lantern;

namespace {

std::vector<LabelledTree> read(const std::string& text, Vocabulary& words,
                               const TreebankOptions& options = {}) {
  std::istringstream in(text);
  return read_treebank(in, "t.txt", words, options);
}

/// The tree as text again.
std::string str(const LabelledTree& t, const Vocabulary& words) {
  const auto [word, label] = t.value();
  const std::string below = word >= 0 ? words.word(word) : str(t.left(), words) + " " + str(t.right(), words);
  return "(" + std::to_string(label) + " " + below + ")";
}

std::string error_of(const std::string& text) {
  Vocabulary words;
  try {
    read(text, words);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a treebank is read and written back", "[treebank]") {
  Vocabulary words;
  const std::string one = "(3 (2 It) (4 (2 's) (1 (0 good) (2 fun\\/work))))";
  const auto trees = read(one + "\n\n(4\r\n\t(2 good)(2 It))\n(0 bad)", words);
  REQUIRE(trees.size() == 3);
  CHECK(str(trees[0], words) == one);
  CHECK(str(trees[1], words) == "(4 (2 good) (2 It))");
  CHECK(str(trees[2], words) == "(0 bad)");
  CHECK(trees[0].size() == 7);
  CHECK(words.size() == 6);  // with <unknown>
  CHECK(std::get<0>(trees[1].left().value()) == words.find("good"));
  CHECK(std::get<0>(trees[1].value()) == -1);
}

TEST_CASE("words that are not to be listed count as unknown", "[treebank]") {
  Vocabulary words;
  const std::int64_t good = words.add("good");
  CHECK(words.add("good") == good);
  CHECK(words.find("bad") == Vocabulary::unknown);
  const auto trees = read("(1 (2 good) (2 bad))", words, {.new_words = false});
  CHECK(str(trees[0], words) == "(1 (2 good) (2 <unknown>))");
  CHECK(words.size() == 2);
}

TEST_CASE("a limit on the number of trees, and other labels", "[treebank]") {
  Vocabulary words;
  CHECK(read("(1 a) (1 b) (oops", words, {.limit = 2}).size() == 2);
  CHECK(read("", words).empty());
  CHECK(read("(9 a)", words, {.labels = 10}).size() == 1);
}

TEST_CASE("depth is no concern", "[treebank]") {
  const std::size_t depth = 300'000;
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += "(1 (2 a)";
  text += "(2 a)" + std::string(depth, ')');
  Vocabulary words;
  CHECK(read(text, words)[0].size() == 2 * static_cast<std::int64_t>(depth) + 1);
}

TEST_CASE("errors name place, expectation and finding", "[treebank]") {
  CHECK(error_of("3 (2 a)") == "t.txt:1:1: error: expected '(' to begin a tree, got '3'");
  CHECK(error_of("(2 a)\n  (x a)") == "t.txt:2:4: error: expected a label from 0 to 4, got 'x'");
  CHECK(error_of("(5 a)") == "t.txt:1:2: error: expected a label from 0 to 4, got '5'");
  CHECK(error_of("(-1 a)") == "t.txt:1:2: error: expected a label from 0 to 4, got '-1'");
  CHECK(error_of("(2x a)") == "t.txt:1:2: error: expected a label from 0 to 4, got '2x'");
  CHECK(error_of("((2 a)") == "t.txt:1:2: error: expected a label from 0 to 4, got '('");
  CHECK(error_of("(2 )") == "t.txt:1:4: error: expected a word or '(' (begun at 1:1), got ')'");
  CHECK(error_of("(2 a b)") == "t.txt:1:6: error: expected ')' to end the node (begun at 1:1), got 'b'");
  CHECK(error_of("(2 (2 a))") ==
        "t.txt:1:9: error: expected '(' to begin a second child (begun at 1:1), got ')'");
  CHECK(error_of("(2 (2 a) b)") ==
        "t.txt:1:10: error: expected '(' to begin a second child (begun at 1:1), got 'b'");
  CHECK(error_of("(2 (2 a) (2 b) (2 c))") ==
        "t.txt:1:16: error: expected ')' to end the node (begun at 1:1), got '('");
  CHECK(error_of("(2 (2 a)\n(2 b)") ==
        "t.txt:2:6: error: expected ')' to end the node (begun at 1:1), got the end of the file");
  Vocabulary words;
  CHECK_THROWS_WITH(read_treebank("/nowhere/t.txt", words), "/nowhere/t.txt: error: cannot be opened");
}
