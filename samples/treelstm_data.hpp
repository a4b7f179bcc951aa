// What the TreeLSTM of sentiment_treelstm.cpp learns: sentences of the Stanford Sentiment Treebank (Socher et
// al. 2013), or expressions made on the spot.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <lantern/nn.hpp>
#include <sstream>

#include "lantern/runtime/treebank.hpp"

namespace treelstm {

using namespace lantern;

/// A tree that knows its words by their number among its own, the rows of the embedding that these are, and the tree
/// with the numbers of the rows.
struct Example {
  nn::UniqueRows words;
  LabelledTree tree, original;
};

struct Data {
  Vocabulary words;
  std::vector<Example> train, held_out;
  bool sentiment = false;

  static std::vector<Example> examples(const std::vector<LabelledTree>& trees) {
    std::vector<Example> all(trees.size());
    for (std::size_t i = 0; i < trees.size(); ++i) {
      all[i].tree = all[i].words.renumber(trees[i]);
      all[i].original = trees[i];
    }
    return all;
  }
};

inline constexpr int deepest = 3;

/// Appends a nested list as in ListOps (Nangia and Bowman, 2018), in PTB form, and gives its value. The list
/// [MAX 1 4 2] is the tree (((MAX 1) 4) 2); every node is labelled with the value so far; SUM is modulo 5.
inline std::int64_t append_expression(std::string& text, int depth, nn::Generator& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  if (depth == 0 || (depth < deepest && below(4) == 0)) {
    const std::int64_t digit = below(5);
    text += fmt::format("({} {})", digit, digit);
    return digit;
  }
  enum { max, min, sum };
  const auto operation = static_cast<std::size_t>(below(3));
  std::int64_t value = operation == min ? 4 : 0;
  std::string list = fmt::format("({} {})", value, std::array{"MAX", "MIN", "SUM"}[operation]);
  for (std::int64_t operands = 2 + below(2); operands > 0; --operands) {
    std::string operand;
    const std::int64_t x = append_expression(operand, depth - 1, random);
    value = operation == max ? std::max(value, x) : operation == min ? std::min(value, x) : (value + x) % 5;
    list = fmt::format("({} {} {})", value, list, operand);
  }
  text += list;
  return value;
}

/// So many expressions to train on, and 500 others.
inline Data make_expressions(std::size_t trees, nn::Generator& random) {
  const auto make = [&](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) append_expression(text, deepest, random);
    return text;
  };
  Data data;
  std::istringstream train(make(trees)), held_out(make(500));
  data.train = Data::examples(read_treebank(train, "train", data.words));
  data.held_out = Data::examples(read_treebank(held_out, "held out", data.words, {.new_words = false}));
  return data;
}

/// train.txt, of which at most so many trees where that is not 0, and dev.txt. Words that only the latter has
/// are unknown.
inline Data read_sentences(const std::filesystem::path& folder, std::size_t trees) {
  Data data;
  data.sentiment = true;
  TreebankOptions reading;
  if (trees > 0) reading.limit = trees;
  data.train = Data::examples(read_treebank(folder / "train.txt", data.words, reading));
  data.held_out = Data::examples(read_treebank(folder / "dev.txt", data.words, {.new_words = false}));
  return data;
}

/// Starts rows of the embedding from a file of lines "word x1 x2 ...", by the word in lower case; gives how
/// many.
template <class E>
std::size_t load_vectors(const std::filesystem::path& file, const Vocabulary& words,
                         TensorValue<E>& embedding) {
  std::unordered_map<std::string, std::vector<E>> vectors;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string word;
    fields >> word;
    vectors[word] = {std::istream_iterator<E>(fields), {}};
  }
  const auto width = static_cast<std::size_t>(embedding.shape[1]);
  std::size_t found = 0;
  for (std::int64_t i = 1; i < words.size(); ++i) {
    std::string word = words.word(i);
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto at = vectors.find(word);
    if (at == vectors.end() || at->second.size() != width) continue;
    std::copy(at->second.begin(), at->second.end(), embedding.data.begin() + i * embedding.shape[1]);
    ++found;
  }
  return found;
}

}  // namespace treelstm
