// Treebanks: binary trees with labelled nodes and words at the leaves, in Penn style, (3 (2 good) (2 film)), and as arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "lantern/runtime/tree.hpp"

namespace lantern {

/// A node holds the number of its word (-1 at inner nodes) and its label.
using LabelledTree = Tree<std::tuple<std::int64_t, std::int64_t>>;

/// Words by number. Number 0 represents every word that is not listed.
class Vocabulary {
 public:
  static constexpr std::int64_t unknown = 0;

  /// The number of a word, which is listed if it was not yet.
  std::int64_t add(std::string_view word);
  /// The number of a word; `unknown` where it is not listed.
  std::int64_t find(std::string_view word) const;
  /// The word of a number from 0 to size() - 1; "<unknown>" for 0.
  const std::string& word(std::int64_t number) const { return words_[static_cast<std::size_t>(number)]; }
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }

 private:
  std::vector<std::string> words_{"<unknown>"};
  std::unordered_map<std::string, std::int64_t> numbers_;
};

struct TreebankOptions {
  std::int64_t labels = 5;  ///< labels are 0 .. labels-1
  bool new_words = true;    ///< list words that are new; else they count as unknown
  std::size_t limit = std::numeric_limits<std::size_t>::max();  ///< read this many trees at most
};

/// Reads trees, separated by white space; they may span lines. `name` represents the stream in messages.
/// A word is any text without white space and brackets, kept as it is.
/// Errors: "name:line:column: error: expected ..., got ..."; columns count bytes from 1.
std::vector<LabelledTree> read_treebank(std::istream& in, const std::string& name, Vocabulary& vocabulary,
                                        const TreebankOptions& options = {});

/// The same from a file. Error where it cannot be opened.
std::vector<LabelledTree> read_treebank(const std::filesystem::path& file, Vocabulary& vocabulary,
                                        const TreebankOptions& options = {});

/// Reads trees as arrays of numbers, separated by white space: how many trees there are, then of each the number of its nodes,
/// and of the nodes the labels, the words (-1 at inner nodes), the left and the right children (-1 at leaves). Node 0 is the
/// root, and a node comes before its children.
/// Errors: "name:line: error: expected ..., got ..."; a node that is no child or twice one.
std::vector<LabelledTree> read_tree_arrays(std::istream& in, const std::string& name, std::int64_t labels = 5);
/// The same from a file. Error where it cannot be opened.
std::vector<LabelledTree> read_tree_arrays(const std::filesystem::path& file, std::int64_t labels = 5);

}  // namespace lantern
