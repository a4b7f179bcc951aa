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

/// Places in sorted elements around q (n - 1), and the part of the way between them.
template <class E>
struct QuantilePlace {
  Rep<std::int64_t> below, above;
  Rep<E> part;
};
template <class E>
QuantilePlace<E> quantile_place(const Rep<E>& q, const Rep<std::int64_t>& n, std::source_location l) {
  const Build build{here(l)};
  build.require(((q >= E(0)) & (q <= E(1))).datum(), "quantile: expected a part from 0 to 1");
  build.require((n > 0).datum(), "quantile: expected one element or more");
  const Rep<E> place = q * cast<E>(n - 1, l);
  const Rep<std::int64_t> below = min(cast<std::int64_t>(place, l), n - 1, l);
  return {below, min(below + 1, n - 1, l), place - cast<E>(below, l)};
}
/// The value between two neighbours; NaN where the largest element is.
template <class T, class E>
Rep<T> between(const Rep<T>& below, const Rep<T>& above, const Rep<T>& last, const Rep<E>& part, const Location& loc) {
  const Rep<T> mixed = (E(1) - part) * below + part * above;
  const Rep<T> value = choose(part == E(0), below, mixed, loc);
  return choose(last == last, value, last, loc);
}
}  // namespace detail

/// The value below which the part q of all elements lies, between two elements on the line between them
/// (numpy.quantile, method "linear"); q is a number or a Rep of the elements' type. NaN where an element is NaN.
/// Derivatives go to the one or two elements that it is made of, and to q. Errors: a part outside 0 to 1, no element.
template <detail::FloatTensor T, std::convertible_to<Rep<detail::element_t<T>>> Q>
[[nodiscard]] Rep<detail::element_t<T>> quantile(const Rep<T>& t, const Q& q,
                                                 std::source_location l = std::source_location::current()) {
  using E = detail::element_t<T>;
  const Rep<Tensor<E, dyn>> sorted = sort<0>(ravel(t, l), false, l);
  const Rep<std::int64_t> n = sorted.size(l);
  const auto place = detail::quantile_place(Rep<E>(q), n, l);
  return detail::between(sorted(At(place.below, l)), sorted(At(place.above, l)), sorted(At(n - 1, l)), place.part,
                         here(l));
}
/// The same along a dimension, which the result does not have.
template <int axis, detail::FloatTensor T, std::convertible_to<Rep<detail::element_t<T>>> Q>
[[nodiscard]] Rep<Tensor<detail::element_t<T>>> quantile(const Rep<T>& t, const Q& q,
                                                         std::source_location l = std::source_location::current()) {
  using E = detail::element_t<T>;
  const Rep<Tensor<E>> sorted = sort<axis>(t, false, l);
  const int along = detail::axis_of("quantile", t.datum(), axis, here(l));
  const Rep<std::int64_t> n = detail::dimension(t.datum(), along, here(l));
  const auto place = detail::quantile_place(Rep<E>(q), n, l);
  const auto elements = [&](const Rep<std::int64_t>& i) {
    return squeeze<axis>(take<axis>(sorted, fill(i, At<std::int64_t>(1, l)), l), l);
  };
  const auto below = elements(place.below), above = elements(place.above), last = elements(n - 1);
  const auto mixed = (E(1) - place.part) * below + place.part * above;
  return where(last == last, where(zeros_like(below, l) + place.part == E(0), below, mixed, l), last, l);
}
/// The middle element, or the mean of the middle two: quantile(t, 0.5).
template <detail::FloatTensor T>
[[nodiscard]] Rep<detail::element_t<T>> median(const Rep<T>& t, std::source_location l = std::source_location::current()) {
  return quantile(t, 0.5, l);
}
template <int axis, detail::FloatTensor T>
[[nodiscard]] Rep<Tensor<detail::element_t<T>>> median(const Rep<T>& t,
                                                       std::source_location l = std::source_location::current()) {
  return quantile<axis>(t, 0.5, l);
}

/// log(exp(a) + exp(b)), without overflow (numpy.logaddexp); its derivatives are sigmoid(a - b) and sigmoid(b - a).
template <class T, std::convertible_to<At<T>> U>
  requires(FloatElement<typename detail::Traits<T>::element>)
[[nodiscard]] Rep<T> logaddexp(const Rep<T>& a, const U& b, std::source_location l = std::source_location::current()) {
  using E = typename detail::Traits<T>::element;
  const At<T> second(b, l);
  const Rep<T> down = a - second;
  // The smaller part is added to the larger number. Two equal infinities have no difference.
  const Rep<T> value =
      detail::choose(down >= E(0), a + softplus(-down, l), second + softplus(down, l), here(l));
  return detail::choose(down == down, value, E(0.5) * (a + second), here(l));
}
template <class T, class U>
  requires(FloatElement<typename detail::Traits<T>::element> && std::is_arithmetic_v<U>)
[[nodiscard]] Rep<T> logaddexp(U a, const Rep<T>& b, std::source_location l = std::source_location::current()) {
  return logaddexp(b, a, l);
}

/// The x with erfc(x) = y, also where y is so small that 1 - y is 1: infinite at 0 and 2, as its derivative, and both are
/// NaN outside. An approximation with the right first digits, and steps of Newton's method for log(erfc(x)), through
/// which its derivatives are right as well. Source: Winitzki, "A handy approximation for the error function and its
/// inverse", 2008.
template <class T>
  requires(FloatElement<typename detail::Traits<T>::element>)
[[nodiscard]] Rep<T> erfcinv(const Rep<T>& y, std::source_location l = std::source_location::current()) {
  using E = typename detail::Traits<T>::element;
  const Location loc = here(l);
  const auto right = y <= E(1);
  const Rep<T> small = detail::choose(right, y, E(2) - y, loc);
  const auto ends = small <= E(0);
  // At the ends the formula has no number; one inside represents them meanwhile.
  const Rep<T> inside = detail::choose(ends, E(0) * small + E(1), small, loc);
  constexpr E a = E(0.147);
  const Rep<T> w = log(inside, l) + log1p(E(1) - inside, l), b = E(4.330746750799873) + E(0.5) * w;  // 2 / (pi a)
  Rep<T> x = sqrt(max(sqrt(max(b * b - w / a, E(0)), l) - b, E(1e-30)), l);
  for (int step = 0; step < 5; ++step) {
    // Two steps give the first three derivatives, from where a constant would do.
    if (step == 3) x = Rep<T>(detail::Build{loc}.primal(x.datum()));
    const Rep<T> there = log(erfc(x, l), l);
    x = x + (there - log(inside, l)) * E(0.886226925452758) * exp(x * x + there, l);
  }
  const Rep<T> found = detail::choose(ends, E(-1) * log(small, l), x, loc);
  return detail::choose(right, found, -found, loc);
}

}  // namespace lantern::core
