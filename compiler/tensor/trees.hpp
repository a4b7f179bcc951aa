// TREE over a batch of trees: level by level where the program allows it.
#pragma once

#include <functional>

#include "lantern/compiler/ad/vmap.hpp"
#include "lantern/compiler/staging/control_flow.hpp"
#include "lantern/runtime/dag_batch.hpp"
#include "lantern/runtime/tree_batch.hpp"

namespace lantern::core {

/// What a program takes a TreeBatch<T> as.
template <class Components>
struct TreesOf;
template <class... T>
struct TreesOf<std::tuple<T...>> {
  using type = TreeRows<Rep<Array<std::int64_t>>, Rep<Array<T>>...>;
};
template <class T>
using Trees = typename TreesOf<typename NodeComponents<T>::tuple>::type;

/// What a program takes a DagBatch<T> as.
template <class Components>
struct DagsOf;
template <class... T>
struct DagsOf<std::tuple<T...>> {
  using type = DagRows<Rep<Array<std::int64_t>>, Rep<Array<T>>...>;
};
template <class T>
using Dags = typename DagsOf<typename NodeComponents<T>::tuple>::type;

/// How TREE folds a batch.
struct TreeOptions {
  bool by_level = true;  ///< false: node by node
};

namespace detail {

/// What the body of a fold is told of a node.
struct NodeData {
  Datum index;                       ///< among the nodes of the batch
  Datum is_leaf, no_left, no_right;  ///< bools
};

/// A fold of a batch, flattened.
struct TreeFold {
  Datum left, right, levels, roots;  ///< TreeRows
  Datums start;
  std::function<Datums(const NodeData&, const Datums& left, const Datums& right)> combine;
};

/// The results at the roots: one row for each tree.
Datums fold_trees(const TreeFold& fold, const TreeOptions& options, const Location& loc);

/// What the body of a fold is told of a node with any number of children.
struct DagNodeData {
  Datum index, is_leaf;
  Datum count;  ///< of its children
  std::function<Datums(const Datum& k, const Location& loc)> child;  ///< the results of child k, from 0 to below count
};

/// A fold of a batch of graphs, flattened.
struct DagFold {
  Datum children, first, levels, roots;  ///< DagRows
  Datums start;                          ///< of the types of the results
  std::function<Datums(const DagNodeData&)> combine;
};
Datums fold_dags(const DagFold& fold, const TreeOptions& options, const Location& loc);

}  // namespace detail

/// A child of a node, of which it is known whether it is there.
class TreeChild {
 public:
  explicit TreeChild(Datum empty) : empty_(std::move(empty)) {}
  const Rep<bool>& empty() const { return empty_; }

 private:
  Rep<bool> empty_;
};

/// A node of a batch, as the body of TREE sees it. It answers as Rep<Tree<T>> does there, so that one generic
/// lambda serves for a tree and for a batch.
template <class... Columns>
class TreeNode {
 public:
  TreeNode(const detail::NodeData& data, std::tuple<Columns...> values)
      : index_(data.index),
        is_leaf_(data.is_leaf),
        left_(data.no_left),
        right_(data.no_right),
        values_(std::move(values)) {}

  /// The node's value: a Rep, or a tuple of Reps where it has several components.
  auto value(std::source_location l = std::source_location::current()) const {
    return std::apply(
        [&](const auto&... column) {
          if constexpr (sizeof...(Columns) == 1)
            return (column[At<std::int64_t>(index_, l)], ...);
          else
            return std::tuple(column[At<std::int64_t>(index_, l)]...);
        },
        values_);
  }
  Rep<bool> empty() const { return Rep<bool>(false); }
  const Rep<bool>& is_leaf() const { return is_leaf_; }
  const TreeChild& left() const { return left_; }
  const TreeChild& right() const { return right_; }
  /// The node's number in the batch, by height: of arrays that a program has by node.
  const Rep<std::int64_t>& index() const { return index_; }

 private:
  Rep<std::int64_t> index_;
  Rep<bool> is_leaf_;
  TreeChild left_, right_;
  std::tuple<Columns...> values_;
};

/// Folds every tree of a batch as TREE(init, tree, combine) folds one, and gives the results as vmap does:
/// row i of each component is that of tree i. `combine` takes the results of the children and a TreeNode
/// (`auto node`).
///
///   Rep<Array<double>> all = TREE(0.0, trees, [&](D left, D right, auto node) { return left + right +
///   node.value(); });
///
/// Compiled code runs level by level: `combine` becomes one computation for all nodes of a height, in which
/// the products of a matrix and each node's vector are one matrix product. Leaves are a phase of their own,
/// so that what a program decides by node.is_leaf() costs nothing. Derivatives are those of that program.
/// Where `combine` does what a level cannot do at once, such as a branch that asks for a node's value, the
/// nodes are computed one after the other; `lanternc --explain` says which it is, and why. Shared nodes are
/// computed once.
///
/// Errors: as of the operations in `combine`; results that are not of init's types.
template <class P, class Rows, class... Columns, class F>
auto TREE(const P& init, const TreeRows<Rows, Columns...>& trees, F combine, const TreeOptions& options,
          std::source_location l = std::source_location::current()) {
  using R = detail::lifted_t<P>;
  using Node = TreeNode<Columns...>;
  static_assert(
      std::is_invocable_v<F&, R, R, Node>,
      "TREE over a batch: expected a lambda of the results of both children and the node, (R left, R right, "
      "auto node), R as init is");
  R start = detail::convert<R>(init);
  detail::TreeFold fold{trees.left.datum(),  trees.right.datum(),    trees.levels.datum(),
                        trees.roots.datum(), detail::flatten(start), {}};
  const detail::Structure<R> structure(start);
  const std::tuple<Columns...> values = trees.values;
  fold.combine = [&](const detail::NodeData& node, const Datums& left, const Datums& right) {
    return detail::flatten(detail::convert<R>(
        combine(detail::rebuild(*structure, left), detail::rebuild(*structure, right), Node(node, values))));
  };
  const Datums results = detail::fold_trees(fold, options, here(l));
  return detail::rebuild(detail::structured_like<detail::batch_t<R>>(start), results);
}
template <class P, class Rows, class... Columns, class F>
auto TREE(const P& init, const TreeRows<Rows, Columns...>& trees, F combine,
          std::source_location l = std::source_location::current()) {
  return TREE(init, trees, std::move(combine), TreeOptions{}, l);
}

/// The results of a node's children, as the body of TREE over graphs sees them.
template <class R>
class Children {
 public:
  Children(const detail::DagNodeData& data, const detail::Structure<R>& structure)
      : size_(data.count), child_(data.child), structure_(structure) {}

  const Rep<std::int64_t>& size() const { return size_; }
  /// Of child k, in the order of DagBuilder::add. Error: k is not from 0 to below size().
  R operator[](const At<std::int64_t>& k) const { return detail::rebuild(*structure_, child_(k.datum, k.loc)); }

 private:
  Rep<std::int64_t> size_;
  std::function<Datums(const Datum&, const Location&)> child_;
  const detail::Structure<R>& structure_;
};

/// A node of a batch of graphs.
template <class... Columns>
class DagNode {
 public:
  DagNode(const detail::DagNodeData& data, std::tuple<Columns...> values)
      : index_(data.index), is_leaf_(data.is_leaf), values_(std::move(values)) {}

  /// The node's value: a Rep, or a tuple of Reps where it has several components.
  auto value(std::source_location l = std::source_location::current()) const {
    return std::apply(
        [&](const auto&... column) {
          if constexpr (sizeof...(Columns) == 1)
            return (column[At<std::int64_t>(index_, l)], ...);
          else
            return std::tuple(column[At<std::int64_t>(index_, l)]...);
        },
        values_);
  }
  const Rep<bool>& is_leaf() const { return is_leaf_; }

 private:
  Rep<std::int64_t> index_;
  Rep<bool> is_leaf_;
  std::tuple<Columns...> values_;
};

/// Folds graphs whose nodes have any number of children, bottom up, and gives the results of the roots as vmap does. The
/// results have init's types and shapes; its values are not used. `combine` takes Children<R> and a DagNode:
///
///   Rep<Array<double>> all = TREE(0.0, dags, [&](const auto& children, auto node) {
///     return FOR(0, children.size(), D(node.value()), [&](I k, D sum) { return D(sum + children[k]); });
///   });
///
/// Runs level by level as over trees. A loop over the children is one over the level: it runs until the node with the
/// most children is done. A node that several nodes share is computed once.
///
/// Errors: as of the operations in `combine`; results that are not of init's types; a child that is not there.
template <class P, class Rows, class... Columns, class F>
auto TREE(const P& init, const DagRows<Rows, Columns...>& dags, F combine, const TreeOptions& options,
          std::source_location l = std::source_location::current()) {
  using R = detail::lifted_t<P>;
  using Node = DagNode<Columns...>;
  static_assert(std::is_invocable_v<F&, const Children<R>&, Node>,
                "TREE over graphs: expected a lambda of the children's results and the node, "
                "(const auto& children, auto node)");
  R start = detail::convert<R>(init);
  detail::DagFold fold{dags.children.datum(), dags.first.datum(),     dags.levels.datum(),
                       dags.roots.datum(),    detail::flatten(start), {}};
  const detail::Structure<R> structure(start);
  const std::tuple<Columns...> values = dags.values;
  fold.combine = [&](const detail::DagNodeData& node) {
    return detail::flatten(detail::convert<R>(combine(Children<R>(node, structure), Node(node, values))));
  };
  const Datums results = detail::fold_dags(fold, options, here(l));
  return detail::rebuild(detail::structured_like<detail::batch_t<R>>(start), results);
}
template <class P, class Rows, class... Columns, class F>
auto TREE(const P& init, const DagRows<Rows, Columns...>& dags, F combine,
          std::source_location l = std::source_location::current()) {
  return TREE(init, dags, std::move(combine), TreeOptions{}, l);
}

}  // namespace lantern::core
