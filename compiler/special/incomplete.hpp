// Incomplete gamma and beta functions.
//
// Derivatives by x are the densities; those by the parameters are the derivatives of the series and
// fractions, which converge as fast. Both are exact to any order. The numbers of terms grow with the square
// root of the parameters.
#pragma once

#include "lantern/compiler/special/loops.hpp"

namespace lantern::core::special {

namespace detail {

/// P(a, x), or Q where `upper`, and its derivatives; NaN outside.
D gamma_ratio_of(const D& a, const D& x, bool upper);
/// I_x(a, b) and its derivatives; NaN outside.
D beta_ratio_of(const D& a, const D& b, const D& x);

}  // namespace detail

/// The regularised lower incomplete gamma function P(a, x), from 0 at x = 0 to 1: the share of a gamma
/// distribution of shape a and rate 1 that lies below x (scipy.special.gammainc). x: a number or a tensor; a:
/// a number, or a tensor of x's shape. NaN for a < 0 or x < 0. Differentiated by a and x, to any order; at x
/// = 0 the derivatives by x of second order and above are NaN. Relative accuracy: about 1e-14 a, at most.
template <class T, detail::Beside<T> A>
requires(detail::Real<T>)
    [[nodiscard]] Rep<T> gammainc(const A& a, const Rep<T>& x,
                                  std::source_location l = std::source_location::current()) {
  return detail::each(
      [](const detail::D& v, const detail::D& p) { return detail::gamma_ratio_of(p, v, false); }, l, x, a);
}
/// Its complement Q(a, x) = 1 - P(a, x), accurate where it is small (scipy.special.gammaincc).
template <class T, detail::Beside<T> A>
requires(detail::Real<T>)
    [[nodiscard]] Rep<T> gammaincc(const A& a, const Rep<T>& x,
                                   std::source_location l = std::source_location::current()) {
  return detail::each(
      [](const detail::D& v, const detail::D& p) { return detail::gamma_ratio_of(p, v, true); }, l, x, a);
}
/// The regularised incomplete beta function I_x(a, b), from 0 at x = 0 to 1 at 1: the share of a beta
/// distribution that lies below x (scipy.special.betainc). NaN for a or b of 0 or less, and outside of [0,
/// 1]. Arguments, derivatives and accuracy as of gammainc.
template <class T, detail::Beside<T> A, detail::Beside<T> B>
requires(detail::Real<T>)
    [[nodiscard]] Rep<T> betainc(const A& a, const B& b, const Rep<T>& x,
                                 std::source_location l = std::source_location::current()) {
  return detail::each([](const detail::D& v, const detail::D& p,
                         const detail::D& q) { return detail::beta_ratio_of(p, q, v); },
                      l, x, a, b);
}

}  // namespace lantern::core::special
