// The treebank reader: trees, words, and what it says about a malformed file.
#include "lantern/runtime/treebank.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "lantern/ir/error.hpp"
#include "lantern/runtime/tree_loader.hpp"

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

namespace {

std::vector<LabelledTree> read_arrays(const std::string& text) {
  std::istringstream in(text);
  return read_tree_arrays(in, "t.txt");
}
std::string array_error(const std::string& text) {
  try {
    read_arrays(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// Labels and shape.
std::string shape(const LabelledTree& t) {
  if (t.empty()) return "";
  return "(" + std::to_string(std::get<1>(t.value())) + shape(t.left()) + shape(t.right()) + ")";
}

}  // namespace

TEST_CASE("trees as arrays", "[treebank]") {
  Vocabulary words;
  for (const char* word : {"a", "b", "c"}) words.add(word);
  const auto trees = read_arrays("2\n5\n3 2 4 1 0\n-1 1 -1 2 3\n1 -1 3 -1 -1\n2 -1 4 -1 -1\n1\n2\n2\n-1\n-1\n");
  REQUIRE(trees.size() == 2);
  CHECK(str(trees[0], words) == "(3 (2 a) (4 (1 b) (0 c)))");
  CHECK(str(trees[1], words) == "(2 b)");

  CHECK(array_error("") == "t.txt:1: error: expected the number of trees, got the end of the file");
  CHECK(array_error("1\n0\n") == "t.txt:2: error: expected the number of a tree's nodes, 1 or more, got '0'");
  CHECK(array_error("1 1 5") == "t.txt:1: error: expected a label from 0 to 4, got '5'");
  CHECK(array_error("1 1 2 x") == "t.txt:1: error: expected the number of a word, or -1, got 'x'");
  CHECK(array_error("1 2\n2 2\n-1 1\n0 -1\n-1 -1") ==
        "t.txt:4: error: expected a child from 1 to 1, or -1, got '0'");
  CHECK(array_error("1 2\n2 2\n-1 1\n1 -1\n1 -1") ==
        "t.txt:5: error: expected every node to be the child of one, got node 1 twice");
  CHECK(array_error("1 2\n2 2\n-1 1\n-1 -1\n-1 -1") ==
        "t.txt:5: error: expected every node to be the child of one, got node 1 without a parent");
  CHECK_THROWS_WITH(read_tree_arrays("/nowhere/t.txt"), "/nowhere/t.txt: error: cannot be opened");

  const char* const named = std::getenv("LANTERN_DATA");
  const std::filesystem::path folder = named ? named : LANTERN_TEST_DIR "/../../shared/data";
  if (!exists(folder / "sst/lantern_array_tree_dev.txt")) {
    WARN("skipped: no sst/lantern_array_tree_dev.txt in the data folder");
    return;
  }
  const auto arrays = read_tree_arrays(folder / "sst/lantern_array_tree_dev.txt");
  const auto brackets = read_treebank(folder / "sst/dev.txt", words);
  REQUIRE(arrays.size() == brackets.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) different += shape(arrays[i]) != shape(brackets[i]);
  CHECK(different == 0);
}

TEST_CASE("a loader gives every tree once an epoch, in another order, the same for a seed", "[treebank]") {
  const auto make = [](std::span<const std::size_t> which) { return std::vector(which.begin(), which.end()); };
  TreeLoader loader(10, 4, 7, make), again(10, 4, 7, make);
  REQUIRE(loader.batches() == 3);
  std::set<std::vector<std::size_t>> orders;
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::size_t> all;
    for (const std::size_t size : {4, 4, 2}) {
      const auto batch = loader.next();
      CHECK(batch.size() == size);
      CHECK(batch == again.next());
      all.insert(all.end(), batch.begin(), batch.end());
    }
    orders.insert(all);
    std::ranges::sort(all);
    CHECK(all == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
  CHECK(orders.size() == 4);

  const auto wrong = [](std::span<const std::size_t>) -> int { throw Error("no such file"); };
  TreeLoader failing(1, 1, 1, wrong);
  CHECK_THROWS_WITH(failing.next(), "no such file");
  CHECK_THROWS_WITH(failing.next(), "no such file");
  CHECK_THROWS_WITH(TreeLoader(3, 0, 1, make), "TreeLoader: expected batches of one tree or more, got 0");
  TreeLoader empty(0, 4, 1, make);
  CHECK_THROWS_WITH(empty.next(), "TreeLoader: expected a tree or more, got none");
}
