// A graph as nested boxes of statements: what --emit=svg and --emit=html show.
//
//   fun f(x)
//   +----------------------------------------+
//   |        [ x: f64[?] ]                   |   parameters
//   |  s = for i from 0 to size(x)           |   a loop: a box of its own, folded or open
//   |  +----------------------------------+  |
//   |  |  s = 0                           |  |   what it carries from iteration to iteration
//   |  |  d = x[i] - 1                    |  |   operations that are used once stand inside their user
//   |  |  s <- s + d * d                  |  |
//   |  +----------------------------------+  |
//   |        return s                        |
//   +----------------------------------------+
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

struct DrawnBlock;

/// A statement or, where it has blocks, a box.
struct DrawnItem {
  enum class Kind { parameter, statement, effect, call, result, loop, branch, function, group };
  Kind kind = Kind::statement;
  std::string text;
  std::string types;           ///< of its results
  Location loc;                ///< its part: of a box only where all of it belongs to one
  std::size_t operations = 0;  ///< of the graph, that it represents
  std::vector<DrawnBlock> blocks;
  bool open = false;  ///< of a box: shown with what is in it
  double left = 0;    ///< where it begins in its row, in characters; a box takes the whole row
  bool is_box() const { return !blocks.empty(); }
  /// In characters of one width: the text, its line, and a margin around them.
  std::size_t width() const;
};

/// Items in rows from the top to the bottom: a value is made in a row above those where it is used.
struct DrawnBlock {
  std::string title;
  std::vector<DrawnItem> items;
  std::vector<std::vector<std::size_t>> rows;  ///< of items
  std::vector<std::pair<std::size_t, std::size_t>>
      edges;                 ///< from the item that makes a value to one that uses it
  std::size_t left_out = 0;  ///< operations that are not shown
};

struct DrawingOptions {
  std::size_t row = 84;        ///< characters side by side
  std::size_t shown = 60;      ///< items in open boxes, as far as the outermost boxes allow
  std::size_t items = 20'000;  ///< in all; what is beyond is left out
};

/// A box for each function, the entry first. Time and size are linear in the graph's, however deep it nests.
std::vector<DrawnItem> drawing(const Module& module, const DrawingOptions& options = {});

}  // namespace lantern::ir
