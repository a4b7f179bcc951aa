// Bessel functions of whole order: J, Y, I and K.
//
// J and I: Miller's backward recurrence, which gives small values their digits, normalised by 1 = J0 + 2 (J2
// + J4 + ...) and e^x = I0 + 2 (I1 + I2 + ...). Y: Neumann's series in J for orders 0 and 1, then the forward
// recurrence. K: the trapezoidal rule for the integral of exp(-x cosh t) cosh(n t), which converges
// exponentially. Sources: DLMF 10.74(iv), 10.12.4, 10.35.5, 10.32.9; Abramowitz & Stegun, "Handbook of
// Mathematical Functions", 1964, 9.1.88 for Y; Olver, "Numerical solution of second-order linear difference
// equations", 1967; Trefethen & Weideman, "The exponentially convergent trapezoidal rule", SIAM Review 56,
// 2014.
#include "lantern/compiler/special/bessel.hpp"

#include <numbers>

namespace lantern::core::special::detail {

namespace {

/// What a backward recurrence gathers, up to one common factor.
struct Recurrence {
  D above, here;    ///< of orders k + 1 and k
  D wanted, first;  ///< of the order asked for, and of order 1
  D norm;           ///< the sum that is known
  D even, odd;      ///< Neumann's sums for Y0 and Y1
};

/// f[k - 1] = (2 k / x) f[k] - or + f[k + 1] for k from `from` to 1: of J where `oscillating`, else of I. x >
/// 0.
Recurrence backward(const I& from, const I& order, const D& x, bool oscillating) {
  const Recurrence start{D(0.0), D(1e-280), D(0.0), D(0.0), D(0.0), D(0.0), D(0.0)};
  return FOR(0, from + 1, start, [&](const I& step, const Recurrence& r) {
    const I k = from - step;  // r.here is f[k]
    const D n = cast<double>(k);
    const D wanted = select(k == order, r.here, r.wanted), first = select(k == 1, r.here, r.first);
    const B is_even = k % 2 == 0, is_zero = k == 0;
    const D half = cast<double>(k / 2), sign = select((k / 2) % 2 == 0, D(1.0), D(-1.0));
    D norm = r.norm, even = r.even, odd = r.odd;
    if (oscillating) {
      norm = norm + select(is_zero, r.here, select(is_even, 2.0 * r.here, D(0.0)));
      even = even + select(both(is_even, !is_zero), sign * r.here / max(half, 1.0), D(0.0));
      odd = odd + select(both(!is_even, k > 1), sign * n * r.here / max(half * (half + 1.0), 1.0), D(0.0));
    } else {
      norm = norm + select(is_zero, r.here, 2.0 * r.here);
    }
    const D below = 2.0 * n / x * r.here + (oscillating ? -r.above : r.above);
    const D next = select(is_zero, r.here, below), last = select(is_zero, r.above, r.here);
    const D scale = select(abs(next) > 1e200, D(1e-200), D(1.0));
    return Recurrence{scale * last, scale * next, scale * wanted, scale * first,
                      scale * norm, scale * even, scale * odd};
  });
}
/// (x / 2)^n / n!, what J and I are for small x.
D leading_term(const I& n, const D& x) {
  return FOR(0, n, D(1.0), [&](const I& k, const D& p) { return p * (0.5 * x / (cast<double>(k) + 1.0)); });
}
I turning_point(const I& n, const D& x) {
  const D most = max(cast<double>(n), x);
  return cast<std::int64_t>(most + 13.0 * cbrt(most)) + 20;
}
I size_of(const I& n) { return select(n < 0, -n, n); }
D sign_of(const I& n) { return select(n % 2 == 0, D(1.0), D(-1.0)); }

D bessel_j_value(const I& order, const D& at) {
  const I n = size_of(order);
  const D x = abs(at), sign = select((order < 0) == (at < 0.0), D(1.0), sign_of(n));
  const D size = IF(
      x < 1e-8, [&] { return leading_term(n, x); },
      [&] {
        return IF(
            x < 1e7,
            [&] {
              const Recurrence r = backward(turning_point(n, x), n, x, true);
              return r.wanted / r.norm;
            },
            [&] { return select(x == infinity, D(0.0), D(nan)); });
      });
  return sign * size;
}
D bessel_y_value(const I& order, const D& x) {
  const I n = size_of(order);
  const D sign = select(order < 0, sign_of(n), D(1.0));
  const D size = IF(
      both(x > 0.0, x < 1e7),
      [&] {
        // f[0] is the last of the recurrence.
        const Recurrence r = backward(turning_point(I(1), x), I(0), x, true);
        const D j0 = r.wanted / r.norm, j1 = r.first / r.norm,
                logarithm = log(0.5 * x) + std::numbers::egamma;
        const D y0 = 2.0 / std::numbers::pi * (logarithm * j0 - 2.0 * r.even / r.norm);
        const D y1 = 2.0 / std::numbers::pi * (-j0 / x + (logarithm - 1.0) * j1 - r.odd / r.norm);
        const auto [below, here] = FOR(1, n, std::tuple(y0, y1), [&](const I& k, const D& a, const D& b) {
          return std::tuple(b, select(b == -infinity, b, 2.0 * cast<double>(k) / x * b - a));
        });
        return select(n == 0, y0, here);
      },
      [&] { return select(x == 0.0, D(-infinity), select(x == infinity, D(0.0), D(nan))); });
  return sign * size;
}
D bessel_i_value(const I& order, const D& at) {
  const I n = size_of(order);
  const D x = abs(at), sign = select(at < 0.0, sign_of(n), D(1.0)), m = cast<double>(n);
  const D size = IF(
      x < 1e-8, [&] { return leading_term(n, x); },
      [&] {
        return IF(
            x < 720.0,
            [&] {
              const I from = cast<std::int64_t>(sqrt(m * m + 90.0 * x)) + 30;
              const Recurrence r = backward(from, n, x, false);
              return r.wanted / r.norm * exp(0.5 * x) * exp(0.5 * x);
            },
            [&] { return select(x >= 720.0, D(infinity), D(nan)); });
      });
  return sign * size;
}
D bessel_k_value(const I& order, const D& x) {
  const D m = cast<double>(size_of(order));
  return IF(
      both(x > 0.0, x < 1e4),
      [&] {
        // The integrand is largest at sinh t = m / x, and 1e-17 of that where t is `reach`.
        const D peak = asinh(m / x), size = max(sqrt(x * x + m * m), 1e-300);
        const D reach = peak + acosh(1.0 + 40.0 / size), h = min(0.15, 0.6 / sqrt(size));
        const I terms = cast<std::int64_t>(reach / h) + 1;
        const D most = m * peak - x * cosh(peak);
        const D sum = FOR(1, terms, 0.5 * exp(-x - most), [&](const I& k, const D& s) {
          const D t = cast<double>(k) * h;
          return s + 0.5 * (exp(m * t - x * cosh(t) - most) + exp(-m * t - x * cosh(t) - most));
        });
        return h * sum * exp(0.5 * most) * exp(0.5 * most);
      },
      [&] { return select(x == 0.0, D(infinity), select(x >= 1e4, D(0.0), D(nan))); });
}

}  // namespace

// Derivatives are functions of the neighbouring orders, whose rules are met again.
D bessel_j_of(const I& n, const D& x) {
  return custom_jvp([](I k, D v) { return bessel_j_value(k, v); },
                    [](I k, D v, D dv) {
                      return std::tuple(bessel_j_value(k, v),
                                        0.5 * (bessel_j_of(k - 1, v) - bessel_j_of(k + 1, v)) * dv);
                    })(n, x);
}
D bessel_y_of(const I& n, const D& x) {
  return custom_jvp([](I k, D v) { return bessel_y_value(k, v); },
                    [](I k, D v, D dv) {
                      return std::tuple(bessel_y_value(k, v),
                                        0.5 * (bessel_y_of(k - 1, v) - bessel_y_of(k + 1, v)) * dv);
                    })(n, x);
}
D bessel_i_of(const I& n, const D& x) {
  return custom_jvp([](I k, D v) { return bessel_i_value(k, v); },
                    [](I k, D v, D dv) {
                      return std::tuple(bessel_i_value(k, v),
                                        0.5 * (bessel_i_of(k - 1, v) + bessel_i_of(k + 1, v)) * dv);
                    })(n, x);
}
D bessel_k_of(const I& n, const D& x) {
  return custom_jvp([](I k, D v) { return bessel_k_value(k, v); },
                    [](I k, D v, D dv) {
                      return std::tuple(bessel_k_value(k, v),
                                        -0.5 * (bessel_k_of(k - 1, v) + bessel_k_of(k + 1, v)) * dv);
                    })(n, x);
}

}  // namespace lantern::core::special::detail
