// scan: a loop that keeps an output of every iteration.
#pragma once

#include "lantern/compiler/tensor/build.hpp"

namespace lantern::core {

/// `(state, y) = body(i, state)` for i = 0 .. n-1, n at least 1; gives the final state and the outputs y, each as a
/// tensor with a new first dimension of n. The state is any product of Reps, y a Rep of a number or tensor or a
/// tuple of those, of the same shapes in every iteration (a lambda: [](auto i, auto s) { return std::pair(next, y); }).
/// `options` as for FOR. (lax.scan in JAX.)
///
/// The shapes of the outputs are those of the first iteration, which is before the loop.
template <class S, class B>
auto scan(const Subscript& n, const S& state, B&& body, const LoopOptions& options = {},
          std::source_location l = std::source_location::current());

namespace detail {

/// Outputs with a new first dimension.
template <class Y>
struct Stacked;
template <ScalarElement T>
struct Stacked<Rep<T>> {
  using type = Rep<Tensor<T>>;
};
template <class T>
struct Stacked<Rep<Array<T>>> {
  using type = Rep<Tensor<T>>;
};
template <class T, std::int64_t... D>
struct Stacked<Rep<Tensor<T, D...>>> {
  using type = Rep<Tensor<T>>;
};
template <class... Y>
struct Stacked<std::tuple<Y...>> {
  using type = std::tuple<typename Stacked<Y>::type...>;
};

/// The outputs of one iteration, put in row `i`.
Datums with_rows(const Build& b, const Datums& rows, const Datum& i, const Datums& outputs);
/// Tensors of n rows like these.
Datums rows_like(const Build& b, const Datum& n, const Datums& outputs);

}  // namespace detail

template <class S, class B>
auto scan(const Subscript& n, const S& state, B&& body, const LoopOptions& options, std::source_location l) {
  using P = detail::lifted_t<S>;
  using Iteration = std::remove_cvref_t<std::invoke_result_t<B&, Rep<std::int64_t>, P>>;
  static_assert(requires(Iteration t) { t.first; t.second; },
                "scan: expected a body(i, state) that gives a std::pair of the next state and an output");
  using Y = detail::lifted_t<decltype(Iteration::second)>;
  const detail::Build b{here(l)};
  const Rep<std::int64_t> zero = std::int64_t{0};
  b.require(b.less(zero.datum(), n.datum), "scan: expected at least one iteration, got {}", {n.datum});
  const P start = detail::convert<P>(state);
  const Iteration first = body(zero, start);
  const Y output = detail::convert<Y>(first.second);
  Datums now = detail::flatten(detail::convert<P>(first.first));
  const std::size_t states = now.size();
  const Datums outputs = detail::flatten(output);
  const Datums rows = detail::with_rows(b, detail::rows_like(b, n.datum, outputs), zero.datum(), outputs);
  now.insert(now.end(), rows.begin(), rows.end());
  now.insert(now.begin(), detail::literal(std::int64_t{1}));
  const detail::Structure<P> structure(start);
  const auto state_of = [&](const Datums& s) {
    const Datums part(s.begin() + 1, s.begin() + 1 + static_cast<std::ptrdiff_t>(states));
    return detail::rebuild(*structure, part);
  };
  const Datums end = detail::loop(
      std::move(now), [&](const Datums& s) { return b.less(s[0], n.datum); },
      [&](const Datums& s) {
        const Iteration iteration = body(Rep<std::int64_t>(s[0]), state_of(s));
        Datums next = {b.add(s[0], detail::literal(std::int64_t{1}))};
        detail::flatten(detail::convert<P>(iteration.first), next);
        const Datums made = detail::flatten(detail::convert<Y>(iteration.second));
        const Datums kept(s.begin() + 1 + static_cast<std::ptrdiff_t>(states), s.end());
        for (Datum& row : detail::with_rows(b, kept, s[0], made)) next.push_back(std::move(row));
        return next;
      },
      b.loc, detail::attribute_of(options, b.loc));
  using Rows = typename detail::Stacked<Y>::type;
  Datums stacked(end.begin() + 1 + static_cast<std::ptrdiff_t>(states), end.end());
  Rows result{};
  std::size_t i = 0;
  detail::for_each_rep(result, [&]<class T>(Rep<T>& r) { r = Rep<T>(stacked[i++]); });
  return std::pair<P, Rows>(state_of(end), std::move(result));
}

}  // namespace lantern::core
