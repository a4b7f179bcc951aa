// Statistics of tensors and functions beside them: stddev, median, quantile, logaddexp, erfcinv.
//
// Each is a program over Reps, and has the derivatives of that.
#pragma once

#include "lantern/compiler/tensor/build.hpp"
#include "lantern/compiler/tensor/elementwise.hpp"
#include "lantern/compiler/tensor/index.hpp"
#include "lantern/compiler/tensor/reduce.hpp"
#include "lantern/compiler/tensor/shape.hpp"

namespace lantern::core {

/// The square root of var: of all elements, over dimensions, over dimensions that stay (numpy.std). Where all elements
/// are equal it has no derivative (NaN). The deviation of a sample, with n - 1, is sqrt(sample_var(t)).
template <detail::FloatTensor T>
[[nodiscard]] Rep<detail::element_t<T>> stddev(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return sqrt(var(t, l), l);
}
template <int axis, int... axes, detail::FloatTensor T>
[[nodiscard]] auto stddev(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return sqrt(var<axis, axes...>(t, l), l);
}
template <int axis, int... axes, detail::FloatTensor T>
[[nodiscard]] auto stddev(const Rep<T>& t, Keep keep, std::source_location l = std::source_location::current()) {
  return sqrt(var<axis, axes...>(t, keep, l), l);
}

namespace detail {
/// `a` where the condition holds, else `b`: numbers, or tensors element by element.
template <class C, class T>
Rep<T> choose(const Rep<C>& c, const Rep<T>& a, const Rep<T>& b, const Location& loc) {
  return Rep<T>(perform({Opcode::select_, 0, loc}, {c.datum(), a.datum(), b.datum()}));
}

/// Between the elements of `sorted` around the place q (n - 1): their numbers, and the part of the way.
template <class E>
struct QuantilePlace {
  Rep<std::int64_t> below, above;
  Rep<E> part;
};
template <class E>
QuantilePlace<E> quantile_place(const Rep<E>& q, const Rep<std::int64_t>& n, const std::source_location& l) {
  const Build build{here(l)};
  build.require((q >= E(0) & q <= E(1)).datum(), "quantile: expected a part from 0 to 1");
  build.require((n > 0).datum(), "quantile: expected at least one element");
  const Rep<E> place = q * cast<E>(n - 1, l);
  const Rep<std::int64_t> below = min(cast<std::int64_t>(floor(stop(place), l), l), n - 1);
  return {below, min(below + 1, n - 1), place - cast<E>(below, l)};
}
}  // namespace detail
