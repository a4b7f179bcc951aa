// A batch of directed acyclic graphs whose nodes have any number of children, as arrays sorted by height.
//
// Trees of any arity, with shared nodes: the same levels as in tree_batch.hpp, and the children of a node as a row of a
// sparse matrix (compressed sparse rows).
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lantern/ir/error.hpp"
#include "lantern/runtime/tree.hpp"

namespace lantern::core {

/// The arrays of a batch (compare TreeRows). Node i has the children children[first[i]] up to children[first[i + 1]],
/// each given as its row: row j + 1 is node j.
template <class Rows, class... Columns>
struct DagRows {
  Rows children, first;
  Rows levels;  ///< the first node of each height, then the number of nodes; two entries or more
  Rows roots;   ///< rows, in the order of DagBuilder::root
  std::tuple<Columns...> values;  ///< by node
};

template <class Components>
struct DagViewOf;
template <class... T>
struct DagViewOf<std::tuple<T...>> {
  using type = DagRows<std::span<const std::int64_t>, std::span<const T>...>;
  using columns = std::tuple<std::vector<T>...>;
};

}  // namespace lantern::core

namespace lantern {

template <class T>
class DagBuilder;

/// Graphs that a compiled function takes together, where the function takes a `Dags<T>`. Made by DagBuilder.
template <class T>
class DagBatch {
 public:
  using Components = typename core::NodeComponents<T>::tuple;
  using View = typename core::DagViewOf<Components>::type;

  std::int64_t roots() const { return static_cast<std::int64_t>(roots_.size()); }
  std::int64_t nodes() const { return levels_.back(); }
  /// The height of the highest node; leaves have height 1.
  std::int64_t levels() const { return nodes() == 0 ? 0 : static_cast<std::int64_t>(levels_.size()) - 1; }

  /// The arrays, which live as long as the batch.
  View view() const {
    return std::apply([&](const auto&... v) { return View{children_, first_, levels_, roots_, {v...}}; }, values_);
  }
  operator View() const { return view(); }  // NOLINT: a batch is passed as it is

 private:
  friend class DagBuilder<T>;

  std::vector<std::int64_t> children_, first_{0}, levels_{0, 0}, roots_;
  typename core::DagViewOf<Components>::columns values_;
};

/// Adds nodes, children before parents, then gives the batch. Nodes and edges: linear time.
template <class T>
class DagBuilder {
 public:
  /// The number of a new node. Error: a child that was not added yet.
  std::int64_t add(const T& value, std::span<const std::int64_t> children = {}) {
    const auto number = static_cast<std::int64_t>(height_.size());
    std::int64_t height = 1;
    for (const std::int64_t child : children) {
      require(child, "DagBuilder::add: expected children that were added before");
      height = std::max(height, height_[static_cast<std::size_t>(child)] + 1);
    }
    children_.insert(children_.end(), children.begin(), children.end());
    first_.push_back(static_cast<std::int64_t>(children_.size()));
    height_.push_back(height);
    values_.push_back(value);
    return number;
  }
  std::int64_t add(const T& value, std::initializer_list<std::int64_t> children) {
    return add(value, std::span<const std::int64_t>(children.begin(), children.size()));
  }
  /// Asks for the result of a node; results come in this order. Error: a node that was not added.
  void root(std::int64_t node) {
    require(node, "DagBuilder::root: expected a node that was added before");
    roots_.push_back(node);
  }

  /// The batch; the builder starts afresh.
  DagBatch<T> finish() {
    DagBatch<T> batch;
    const std::size_t count = height_.size();
    std::int64_t most = 1;
    for (const std::int64_t h : height_) most = std::max(most, h);
    batch.levels_.assign(static_cast<std::size_t>(most) + 1, 0);
    for (const std::int64_t h : height_) ++batch.levels_[static_cast<std::size_t>(h)];
    for (std::size_t h = 1; h < batch.levels_.size(); ++h) batch.levels_[h] += batch.levels_[h - 1];
    std::vector<std::int64_t> next(batch.levels_), row(count);
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(height_[i]) - 1]++);
      row[i] = static_cast<std::int64_t>(at) + 1;
      order[at] = i;
    }
    batch.children_.reserve(children_.size());
    for (const std::size_t i : order) {
      for (auto k = static_cast<std::size_t>(first_[i]); k < static_cast<std::size_t>(first_[i + 1]); ++k)
        batch.children_.push_back(row[static_cast<std::size_t>(children_[k])]);
      batch.first_.push_back(static_cast<std::int64_t>(batch.children_.size()));
      const auto& parts = core::NodeComponents<T>::split(values_[i]);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (std::get<I>(batch.values_).push_back(std::get<I>(parts)), ...);
      }
      (std::make_index_sequence<std::tuple_size_v<typename DagBatch<T>::Components>>{});
    }
    for (const std::int64_t node : roots_) batch.roots_.push_back(row[static_cast<std::size_t>(node)]);
    *this = DagBuilder();
    return batch;
  }

 private:
  void require(std::int64_t node, const std::string& expected) const {
    if (node < 0 || node >= static_cast<std::int64_t>(height_.size()))
      throw Error(expected + ", got " + std::to_string(node) + " of " + std::to_string(height_.size()) + " nodes");
  }

  std::vector<std::int64_t> children_, first_{0}, height_, roots_;
  std::vector<T> values_;
};

}  // namespace lantern
