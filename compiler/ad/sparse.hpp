// sparse_jacobian and sparse_hessian: the entries of a sparse matrix of derivatives, by few passes.
#pragma once

#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/ad/index_sets.hpp"
#include "lantern/compiler/staging/requirement.hpp"

namespace lantern::core {

/// Where a matrix of derivatives may differ from zero, in compressed rows, and how its entries are computed.
/// A pass with the sum of the unit vectors of several columns (of a colour) gives their entries at once, in a
/// forward pass; of several rows, in a reverse pass. The program sees it as data: SparsityOf<Rep<int64_t>,
/// Rep<Array<int64_t>>>.
template <class Count, class Indices>
struct SparsityOf {
  Count rows{}, columns{};
  Count forward{}, reverse{};  ///< numbers of forward and of reverse passes: of colours
  Indices row_start{},
      column{};  ///< row i has the columns column[row_start[i]] .. column[row_start[i + 1] - 1]
  Indices column_colour{}, row_colour{};     ///< the pass of each column and row; -1: none
  Indices pass_start{}, entry{}, element{};  ///< see ad::Colouring

  /// As an argument of a compiled function.
  template <class C, class I>
  requires(!std::same_as<Indices, I> && std::is_constructible_v<I, const Indices&>)
  operator SparsityOf<C, I>() const {
    return {rows,          columns,       forward,  reverse,   I(row_start), I(column), I(column_colour),
            I(row_colour), I(pass_start), I(entry), I(element)};
  }
};
using Sparsity = SparsityOf<std::int64_t, std::vector<std::int64_t>>;

namespace detail {

template <std::size_t position, class F, class Params = typename FunctionTraits<F>::Params>
class SparseJacobian;
template <std::size_t position, class F, class... P>
class SparseJacobian<position, F, std::tuple<P...>> {
  using X = std::tuple_element_t<position, std::tuple<P...>>;
  using Y = typename FunctionTraits<F>::Result;
  template <class V>
  struct ElementOf {};
  template <FloatElement T>
  struct ElementOf<Rep<Array<T>>> {
    using type = T;
  };
  static_assert(
      requires { typename ElementOf<X>::type; } && std::same_as<X, Y>,
      "sparse_jacobian: expected a function from array to array of one floating type");
  using T = typename ElementOf<X>::type;
  using Index = Rep<std::int64_t>;
  using Indices = Rep<Array<std::int64_t>>;
  using Structure = SparsityOf<Index, Indices>;

 public:
  SparseJacobian(F f, std::source_location l) : f_(std::move(f)), place_(l) {}

  X operator()(const P&... p, const Structure& s) const {
    const auto by = [&](const X& x) -> Y {
      std::tuple<P...> all(p...);
      std::get<position>(all) = x;
      return convert<Y>(std::apply(f_, all));
    };
    const X x = std::get<position>(std::tuple<P...>(p...));
    require((x.size() == s.columns).datum(),
            "sparse_jacobian: expected the argument of the pattern's size, got another", here(place_));
    X values = fill(Rep<T>(0), s.column.size());
    // Forward: the products with sums of columns.
    values = FOR(
        0, s.forward, values,
        [&](const Index& pass, const X& v) {
          const Y dy = std::get<1>(jvp(by, place_)(x, seed(s.column_colour, pass)));
          return recover(v, dy, s, pass);
        },
        place_);
    // Reverse: those with sums of rows.
    return FOR(
        0, s.reverse, values,
        [&](const Index& pass, const X& v) {
          const X dx = std::get<1>(vjp(by, place_)(x, seed(s.row_colour, pass)));
          return recover(v, dx, s, s.forward + pass);
        },
        place_);
  }
  std::string name() const { return "sparse_jacobian_" + name_of(f_); }

 private:
  X seed(const Indices& colour, const Index& pass) const {
    return FOR(
        0, colour.size(), fill(Rep<T>(0), colour.size()),
        [&](const Index& i, const X& e) { return e.set(i, select(colour[i] == pass, Rep<T>(1), Rep<T>(0))); },
        place_);
  }
  X recover(const X& values, const X& product, const Structure& s, const Index& pass) const {
    return FOR(
        s.pass_start[pass], s.pass_start[pass + 1], values,
        [&](const Index& k, const X& v) { return v.set(s.entry[k], product[s.element[k]]); }, place_);
  }

  F f_;
  std::source_location place_;
};

}  // namespace detail

/// The entries of the Jacobian of f, a function from array to array, in the order of `Sparsity::column`:
/// sparse_jacobian(f)(x..., sparsity), with as many passes as the sparsity has colours. sparse_jacobian<2>(f)
/// is that by argument number 2; the others may be anything. See jacobian_sparsity for the sparsity: data,
/// found once. Where it leaves out a position whose derivative is not zero, entries of the same colour are
/// wrong.
///
///   const Sparsity s = jacobian_sparsity(f)(x);
///   auto j = compile(sparse_jacobian(f));
///   std::vector<double> values = j(x, s);
///
/// Errors: an argument of another size than the sparsity's.
/// Source: Griewank, Walther, "Evaluating Derivatives", 2nd edition, 2008, chapter 8.
template <std::size_t position = 0, class F>
  requires detail::Takes<F, detail::TemplateArguments::position, position>
auto sparse_jacobian(F f, std::source_location l = std::source_location::current()) {
  return detail::SparseJacobian<position, F>(std::move(f), l);
}
LANTERN_TAKES_OPTIONS(sparse_jacobian, position)

/// The entries of the Hessian of f, a scalar function, by argument number `position`, an array, with a
/// sparsity from hessian_sparsity: forward over reverse mode.
template <std::size_t position = 0, class F>
  requires detail::Takes<F, detail::TemplateArguments::position, position>
auto sparse_hessian(F f, std::source_location l = std::source_location::current()) {
  return sparse_jacobian<position>(grad<position>(std::move(f), l), l);
}
LANTERN_TAKES_OPTIONS(sparse_hessian, position)

}  // namespace lantern::core
