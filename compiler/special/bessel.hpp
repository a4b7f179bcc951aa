// Bessel functions of whole order: J, Y, I and K.
#pragma once

#include "lantern/compiler/special/loops.hpp"

namespace lantern::core::special {

namespace detail {

// Of a number; derivatives are functions of the neighbouring orders.
D bessel_j_of(const I& n, const D& x);
D bessel_y_of(const I& n, const D& x);
D bessel_i_of(const I& n, const D& x);
D bessel_k_of(const I& n, const D& x);

}  // namespace detail

/// Each of these: of a whole order n, of any sign, and a number or the elements of a tensor, differentiated
/// by x to any order. Relative accuracy about 1e-13 away from zeros of J and Y, near them absolute.
#define LANTERN_BESSEL(name)                                                                        \
  template <class T>                                                                                \
  requires(detail::Real<T>) [[nodiscard]] Rep<T> name(                                              \
      const At<std::int64_t>& n, const Rep<T>& x,                                                   \
      std::source_location l = std::source_location::current()) {                                   \
    const detail::I order(n.datum);                                                                 \
    return detail::each([order](const detail::D& v) { return detail::name##_of(order, v); }, l, x); \
  }
/// J_n(x), for |x| < 1e7 (NaN beyond), in a time that grows with n and |x| (scipy.special.jn).
LANTERN_BESSEL(bessel_j)
/// Y_n(x), for 0 < x < 1e7; -inf at 0, NaN outside (scipy.special.yn).
LANTERN_BESSEL(bessel_y)
/// I_n(x), infinite for |x| >= 720 (scipy.special.iv).
LANTERN_BESSEL(bessel_i)
/// K_n(x), infinite at 0, NaN below (scipy.special.kn).
LANTERN_BESSEL(bessel_k)
#undef LANTERN_BESSEL

}  // namespace lantern::core::special
