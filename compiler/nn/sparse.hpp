// Embedding tables of which a step touches few rows: their gradients, and what optimisers do with them, have
// those rows alone.
//
//   nn::UniqueRows words;
//   const auto tokens = words.renumber(sentence);  // each word as its number among those met
//   loss = nn::with_rows("words.weight", words, std::tie(model, state),
//                        [&] { return step(model, state, tokens, labels); });
//
// The step is the one that would work on whole tables, with any optimiser: while it runs model.words.weight,
// and whatever the optimiser keeps of it, is a small matrix with the rows of these words. Nothing of the
// table's size is made or gone through: no gradient of zeros, no copy.
//
// Rows that a step does not touch stay as they are, and so does what an optimiser keeps of them. With SGD
// without momentum and with Adagrad that is what a dense step does; momentum, Adam and weight decay reach a
// row when it is touched (what torch.optim.SparseAdam calls lazy).
#pragma once

#include <algorithm>
#include <concepts>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lantern/compiler/nn/parameters.hpp"

namespace lantern::nn {

/// The distinct ones among numbers of rows, in the order in which they are met, and each as its number among
/// them (torch.unique with return_inverse). Numbers below 0 represent no row, and stay.
class UniqueRows {
 public:
  std::int64_t renumber(std::int64_t row) {
    if (row < 0) return row;
    const auto [at, added] = numbers_.try_emplace(row, static_cast<std::int64_t>(rows_.size()));
    if (added) rows_.push_back(row);
    return at->second;
  }
  /// Of the same shape.
  TensorValue<std::int64_t> renumber(const TensorView<const std::int64_t>& rows) {
    TensorValue<std::int64_t> numbers(rows.shape());
    for (std::size_t i = 0; i < numbers.data.size(); ++i)
      numbers[i] = renumber(rows.at_flat(static_cast<std::int64_t>(i)));
    return numbers;
  }
  TensorValue<std::int64_t> renumber(const TensorValue<std::int64_t>& rows) {
    return renumber(TensorView<const std::int64_t>(rows));
  }
  /// A tree whose nodes hold the number of a row, or that first: the word of a LabelledTree, -1 at inner
  /// nodes.
  template <class T>
    requires(std::same_as<std::tuple_element_t<0, typename Tree<T>::Components>, std::int64_t>)
  Tree<T> renumber(const Tree<T>& tree) {
    using Node = typename Tree<T>::Components;
    TreeBuilder<T> builder;
    const core::TreeColumns& from = *tree.columns();
    for (std::size_t i = 0; i < from.left.size(); ++i) {
      Node node = [&]<std::size_t... K>(std::index_sequence<K...>) {
        return Node{reinterpret_cast<const std::tuple_element_t<K, Node>*>(from.values[K].data())[i]...};
      }(std::make_index_sequence<std::tuple_size_v<Node>>{});
      std::get<0>(node) = renumber(std::get<0>(node));
      if constexpr (std::same_as<T, Node>)
        builder.add(node, from.left[i], from.right[i]);
      else
        builder.add(std::get<0>(node), from.left[i], from.right[i]);
    }
    return builder.finish(tree.root());
  }

  const std::vector<std::int64_t>& rows() const { return rows_; }

 private:
  std::vector<std::int64_t> rows_;
  std::unordered_map<std::int64_t, std::int64_t> numbers_;
};

namespace detail {

/// A table and, in what optimisers keep, the tensors that belong to it: in the places of all of them some of
/// their rows, from `cut` to the end of its life.
class CutTables {
 public:
  CutTables(std::string_view table, const std::vector<std::int64_t>& rows) : table_(table), rows_(rows) {}
  CutTables(const CutTables&) = delete;
  CutTables& operator=(const CutTables&) = delete;
  ~CutTables() {
    if (is_cut_) exchange();
  }

  /// The first of the products is the model. The others contain models.
  template <class P>
  void find_in(P& product) {
    const std::vector<std::string> names = parameter_names(product);
    const bool is_model = model_.empty();
    if (is_model) model_ = names;
    const std::set<std::string_view> all(names.begin(), names.end());
    std::size_t i = 0, found = 0;
    for_each_parameter(product, [&]<class Leaf>(const std::string&, Leaf& leaf) {
      const std::string& name = names[i++];
      if (is_model ? name != table_ : !in_model(name, all)) return;
      if constexpr (requires { of(leaf); }) {
        if (std::ranges::any_of(of(leaf), [&](const auto& c) { return c.place == &leaf; }))
          throw Error("with_rows: expected each product once, got that of " + name + " twice");
        of(leaf).push_back({&leaf, rows_of(name, leaf)});
        ++found;
      } else {
        throw Error("with_rows: expected " + name + " to be a tensor of floating numbers");
      }
    });
    if (found > 0) return;
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    throw Error(is_model ? "with_rows: expected the name of one of the model's parameters, " + list +
                               "; got \"" + table_ + "\""
                         : "with_rows: expected what an optimiser keeps of " + table_ + ", got " + list +
                               "; leave out what it keeps nothing in");
  }

  void cut() {
    exchange();
    is_cut_ = true;
  }

  /// Puts the rows back into their tables.
  void put_back() {
    for_each([&](auto& c) {
      if (c.place->shape != shape_of_rows(c.other) ||
          c.place->data.size() != rows_.size() * row_size(c.other))
        throw Error("with_rows: expected " + table_ + " to keep the shape of its " +
                    std::to_string(rows_.size()) + " rows, got another");
    });
    for_each([&](auto& c) {
      const auto n = static_cast<std::ptrdiff_t>(row_size(c.other));
      auto from = c.place->data.cbegin();
      for (const std::int64_t row : rows_) {
        std::copy_n(from, n, c.other.data.begin() + row * n);
        from += n;
      }
    });
  }

 private:
  template <class T>
  struct Cut {
    TensorValue<T>* place;
    TensorValue<T> other;  ///< the rows; after `cut` the table
  };

  /// Whether a name is the table's in a model inside a product of such names.
  bool in_model(const std::string& name, const std::set<std::string_view>& all) const {
    if (name == table_) return true;
    if (!name.ends_with("." + table_)) return false;
    const std::string path = name.substr(0, name.size() - table_.size());
    return std::ranges::all_of(model_, [&](const std::string& other) { return all.contains(path + other); });
  }
  std::vector<Cut<float>>& of(TensorValue<float>&) { return std::get<0>(cut_); }
  std::vector<Cut<double>>& of(TensorValue<double>&) { return std::get<1>(cut_); }

  template <class T>
  static std::size_t row_size(const TensorValue<T>& table) {
    return table.data.size() / static_cast<std::size_t>(std::max<std::int64_t>(table.shape[0], 1));
  }
  template <class T>
  std::vector<std::int64_t> shape_of_rows(const TensorValue<T>& table) const {
    std::vector<std::int64_t> shape = table.shape;
    shape[0] = static_cast<std::int64_t>(rows_.size());
    return shape;
  }
  template <class T>
  TensorValue<T> rows_of(const std::string& name, const TensorValue<T>& table) {
    if (table.shape.empty()) throw Error("with_rows: expected rows in " + name + ", got no dimensions");
    if (shape_.empty()) shape_ = table.shape;
    if (table.shape != shape_)
      throw Error("with_rows: expected " + name + " to have the shape of the model's " + table_);
    const auto n = static_cast<std::ptrdiff_t>(row_size(table));
    std::vector<T> elements;
    elements.reserve(rows_.size() * static_cast<std::size_t>(n));
    for (const std::int64_t row : rows_) {
      if (row >= table.shape[0])
        throw Error("with_rows: expected a row below " + std::to_string(table.shape[0]) +
                    ", the number of rows of " + name + ", got " + std::to_string(row));
      const auto from = table.data.begin() + row * n;
      elements.insert(elements.end(), from, from + n);
    }
    return TensorValue<T>(std::move(elements), shape_of_rows(table));
  }

  template <class F>
  void for_each(const F& f) {
    for (auto& c : std::get<0>(cut_)) f(c);
    for (auto& c : std::get<1>(cut_)) f(c);
  }
  void exchange() {
    for_each([](auto& c) { std::swap(*c.place, c.other); });
  }

  std::string table_;
  const std::vector<std::int64_t>& rows_;
  std::vector<std::string> model_;   ///< its names
  std::vector<std::int64_t> shape_;  ///< of the table
  std::tuple<std::vector<Cut<float>>, std::vector<Cut<double>>> cut_;
  bool is_cut_ = false;
};

}  // namespace detail

/// What f() gives, which is called while a table has only the rows named, in their order: the parameter
/// `table` (a name as for_each_parameter gives it) of the model, which is the first of `products`, and the
/// tensors that belong to it in the others, states of optimisers. Then the rows are put back. After an error
/// the tables are as they were.
///
/// Errors: a name that the model has not; rows beyond the table; a product without such a tensor, or given
/// twice; an f that gives the tensors another shape.
template <class... P, class F>
auto with_rows(std::string_view table, const UniqueRows& rows, const std::tuple<P&...>& products,
               const F& f) {
  static_assert((!std::is_const_v<P> && ...),
                "with_rows: expected variables, whose tables are changed for a while");
  detail::CutTables tables(table, rows.rows());
  std::apply([&](auto&... product) { (tables.find_in(product), ...); }, products);
  tables.cut();
  if constexpr (std::is_void_v<std::invoke_result_t<const F&>>) {
    f();
    tables.put_back();
  } else {
    auto result = f();
    tables.put_back();
    return result;
  }
}

}  // namespace lantern::nn
