// Binary trees as run-time data: structure of arrays, ready for generated code and for batching.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lantern::core {

/// Children by index and values by node; -1 is the empty tree. One `values` column per component.
struct TreeColumns {
  std::vector<std::int64_t> left, right;
  std::vector<std::vector<std::byte>> values;

  static std::shared_ptr<TreeColumns> with(std::size_t components);
  /// Adds a node and gives its number; of each component its bytes.
  std::int64_t append(std::span<const std::span<const std::byte>> components, std::int64_t l, std::int64_t r);
  /// Adds a copy of a tree of others, children first, from left to right; the number of its root.
  std::int64_t append(const TreeColumns& from, std::int64_t root);
};

/// The components of a node value: a scalar has one, a tuple one per element.
template <class T>
struct NodeComponents {
  using tuple = std::tuple<T>;
  static tuple split(const T& v) { return {v}; }
};
template <class... Ts>
struct NodeComponents<std::tuple<Ts...>> {
  using tuple = std::tuple<Ts...>;
  static const tuple& split(const tuple& v) { return v; }
};

}  // namespace lantern::core

namespace lantern {

/// A binary tree whose nodes hold a `T`: bool, int32_t, int64_t, float, double, or a std::tuple of these.
///
/// A default-constructed tree is empty. `Tree(value, left, right)` copies the children and is meant for small
/// trees; use TreeBuilder for large ones. Trees are data: programs are not differentiated with respect to them.
/// As an argument of a compiled function a `Tree<T>` is passed where the function takes `Rep<Tree<T>>`.
template <class T>
class Tree {
 public:
  using value_type = T;
  using Components = typename core::NodeComponents<T>::tuple;

  Tree() : columns_(core::TreeColumns::with(components)) {}
  Tree(const T& value, const Tree& left, const Tree& right) : Tree() {
    const std::int64_t l = columns_->append(*left.columns_, left.root_), r = columns_->append(*right.columns_, right.root_);
    root_ = append(value, l, r);
  }
  /// A leaf: a node with two empty children.
  explicit Tree(const T& value) : Tree(value, Tree(), Tree()) {}

  static constexpr std::size_t components = std::tuple_size_v<Components>;

  bool empty() const { return root_ < 0; }
  Tree left() const { return Tree(columns_, columns_->left[static_cast<std::size_t>(root_)]); }
  Tree right() const { return Tree(columns_, columns_->right[static_cast<std::size_t>(root_)]); }
  T value() const { return read(static_cast<std::size_t>(root_)); }
  std::int64_t size() const { return static_cast<std::int64_t>(columns_->left.size()); }

  const std::shared_ptr<core::TreeColumns>& columns() const { return columns_; }
  std::int64_t root() const { return root_; }

 private:
  template <class>
  friend class TreeBuilder;

  Tree(std::shared_ptr<core::TreeColumns> columns, std::int64_t root)
      : columns_(std::move(columns)), root_(root) {}

  std::int64_t append(const T& value, std::int64_t l, std::int64_t r) {
    const Components& all = core::NodeComponents<T>::split(value);
    const auto bytes = std::apply(
        [](const auto&... one) {
          return std::array<std::span<const std::byte>, components>{std::as_bytes(std::span(&one, 1))...};
        },
        all);
    return columns_->append(bytes, l, r);
  }
  T read(std::size_t node) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      Components parts{reinterpret_cast<const std::tuple_element_t<I, Components>*>(
          columns_->values[I].data())[node]...};
      if constexpr (std::is_same_v<T, Components>) {
        return parts;
      } else {
        return std::get<0>(parts);
      }
    }(std::make_index_sequence<components>{});
  }

  std::shared_ptr<core::TreeColumns> columns_;
  std::int64_t root_ = -1;
};

/// Builds a large tree bottom-up in linear time: `add` returns a node number to use as a child, -1 is empty.
template <class T>
class TreeBuilder {
 public:
  std::int64_t add(const T& value, std::int64_t left = -1, std::int64_t right = -1) {
    return tree_.append(value, left, right);
  }
  /// The finished tree with this root; the builder starts afresh.
  Tree<T> finish(std::int64_t root) {
    Tree<T> done = std::exchange(tree_, Tree<T>());
    done.root_ = root;
    return done;
  }

 private:
  Tree<T> tree_;
};

}  // namespace lantern
