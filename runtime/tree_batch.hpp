// A batch of trees as arrays: the nodes of all trees in one numbering, sorted by height.
//
// The height of a leaf is 1, that of another node one more than its highest child's. Nodes of one height
// never depend on each other, so a fold computes all of them at once, level by level (Looks, Herreshoff,
// Hutchins and Norvig, "Deep learning with dynamic computation graphs", ICLR 2017).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "lantern/ir/error.hpp"
#include "lantern/runtime/tree.hpp"

namespace lantern::core {

/// The arrays of a batch. `Rows` is an array of int64_t, `Columns` one array for each component of a node's
/// value: spans outside of a program, Rep<Array<...>> in it. Children and roots are given as rows: row 0 is
/// the empty tree, row i + 1 is node i.
template <class Rows, class... Columns>
struct TreeRows {
  Rows left, right;  ///< by node: the rows of its children
  Rows levels;       ///< the first node of each height, then the number of nodes; two entries or more
  Rows roots;        ///< by tree
  std::tuple<Columns...> values;  ///< by node
};

template <class Components>
struct TreeViewOf;
template <class... T>
struct TreeViewOf<std::tuple<T...>> {
  using type = TreeRows<std::span<const std::int64_t>, std::span<const T>...>;
};

}  // namespace lantern::core

namespace lantern {

/// Trees that a compiled function takes together, where the function takes a `Trees<T>`. Making one takes a
/// pass over the nodes; `assign` uses the memory again. A node that several parents share is one node of the
/// batch. Error: a child that was added after its parent.
template <class T>
class TreeBatch {
 public:
  using Components = typename Tree<T>::Components;
  using View = typename core::TreeViewOf<Components>::type;

  TreeBatch() { assign(std::span<const Tree<T>>()); }
  /// Of a range of trees, in this order.
  template <class Range>
  requires(!std::is_same_v<std::remove_cvref_t<Range>, TreeBatch>) explicit TreeBatch(const Range& trees) {
    assign(trees);
  }

  template <class Range>
  void assign(const Range& trees) {
    starts_.assign(1, 0);
    heights_.clear();
    for (const Tree<T>& tree : trees) find_heights(tree);
    sort();
    roots_.clear();
    std::size_t first = 0;
    for (const Tree<T>& tree : trees) {
      place(tree, first);
      first += static_cast<std::size_t>(tree.root() + 1);
    }
  }

  std::int64_t trees() const { return static_cast<std::int64_t>(roots_.size()); }
  /// Those that can be reached from the roots.
  std::int64_t nodes() const { return starts_.back(); }
  /// The height of the highest tree.
  std::int64_t levels() const { return nodes() == 0 ? 0 : static_cast<std::int64_t>(starts_.size()) - 1; }

  /// The arrays, which live as long as the batch and until the next `assign`.
  View view() const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return View{left_, right_, starts_, roots_, {column<I>()...}};
    }
    (std::make_index_sequence<Tree<T>::components>{});
  }
  operator View() const { return view(); }  // NOLINT: a batch is passed as it is

 private:
  template <std::size_t I>
  std::span<const std::tuple_element_t<I, Components>> column() const {
    using C = std::tuple_element_t<I, Components>;
    return {reinterpret_cast<const C*>(values_[I].data()), values_[I].size() / sizeof(C)};
  }

  /// Appends the heights of the nodes up to the root; 0 for those that the tree does not have. A node's
  /// children have smaller numbers than itself.
  void find_heights(const Tree<T>& tree) {
    if (tree.empty()) return;
    const core::TreeColumns& c = *tree.columns();
    const std::size_t first = heights_.size(), count = static_cast<std::size_t>(tree.root()) + 1;
    heights_.resize(first + count, 0);
    std::int64_t* const height = heights_.data() + first;
    height[count - 1] = 1;  // 1: it is a node of the tree
    for (std::size_t i = count; i-- > 0;)
      if (height[i] != 0)
        for (const std::int64_t child : {c.left[i], c.right[i]}) {
          if (child >= static_cast<std::int64_t>(i))
            throw Error("TreeBatch: expected children that were added before their parent, got node " +
                        std::to_string(child) + " as a child of node " + std::to_string(i));
          if (child >= 0) height[child] = 1;
        }
    for (std::size_t i = 0; i < count; ++i)
      if (height[i] != 0)
        for (const std::int64_t child : {c.left[i], c.right[i]})
          if (child >= 0) height[i] = std::max(height[i], height[child] + 1);
  }

  /// From heights to the first node of each, and room for the nodes.
  void sort() {
    std::int64_t most = 1;
    for (const std::int64_t h : heights_) most = std::max(most, h);
    starts_.assign(static_cast<std::size_t>(most) + 1, 0);
    for (const std::int64_t h : heights_)
      if (h > 0) ++starts_[static_cast<std::size_t>(h)];
    for (std::size_t h = 1; h < starts_.size(); ++h) starts_[h] += starts_[h - 1];
    next_.assign(starts_.begin(), starts_.end());
    const auto count = static_cast<std::size_t>(starts_.back());
    left_.resize(count);
    right_.resize(count);
    values_.resize(Tree<T>::components);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (values_[I].resize(count * sizeof(std::tuple_element_t<I, Components>)), ...);
    }
    (std::make_index_sequence<Tree<T>::components>{});
  }

  /// Gives the nodes of a tree their rows, in place of their heights, and copies them there.
  void place(const Tree<T>& tree, std::size_t first) {
    if (tree.empty()) {
      roots_.push_back(0);
      return;
    }
    const core::TreeColumns& c = *tree.columns();
    std::int64_t* const row = heights_.data() + first;
    const auto row_of = [&](std::int64_t node) { return node < 0 ? 0 : row[node]; };
    for (std::size_t i = 0, count = static_cast<std::size_t>(tree.root()) + 1; i < count; ++i) {
      if (row[i] == 0) continue;
      const auto at = static_cast<std::size_t>(next_[static_cast<std::size_t>(row[i]) - 1]++);
      row[i] = static_cast<std::int64_t>(at) + 1;
      left_[at] = row_of(c.left[i]);
      right_[at] = row_of(c.right[i]);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (std::memcpy(values_[I].data() + at * sizeof(std::tuple_element_t<I, Components>),
                     c.values[I].data() + i * sizeof(std::tuple_element_t<I, Components>),
                     sizeof(std::tuple_element_t<I, Components>)),
         ...);
      }
      (std::make_index_sequence<Tree<T>::components>{});
    }
    roots_.push_back(row[tree.root()]);
  }

  std::vector<std::int64_t> left_, right_, starts_, roots_;
  std::vector<std::vector<std::byte>> values_;
  std::vector<std::int64_t> heights_, next_;  ///< while the batch is made
};

}  // namespace lantern
