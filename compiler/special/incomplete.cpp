// Incomplete gamma and beta functions, by series and continued fractions. Sources: DLMF 8.7.1, 8.9.2, 8.17.22; Press et
// al., "Numerical Recipes", 3rd edition 2007, 6.2 and 6.4, for Lentz's method.
#include "lantern/compiler/special/incomplete.hpp"

namespace lantern::core::special::detail {

namespace {

constexpr std::int64_t most_terms = 100'000;

/// a log(b), 0 where a is 0.
D xlogy(const D& a, const D& b) { return select(a == 0.0, D(0.0), a * log(b)); }

/// A continued fraction on its way: Lentz's c and d, the value, and how often it has not changed.
struct Fraction {
  D c, d, value;
  I terms, settled;

  /// Another term: numerator and denominator.
  Fraction with(const D& over, const D& under) const {
    constexpr double tiny = 1e-300;
    const auto away = [](const D& v) { return select(abs(v) < tiny, D(tiny), v); };
    const D next_d = 1.0 / away(under + over * d), next_c = away(under + over / c), factor = next_c * next_d;
    const B same = abs(stop_gradient(factor) - 1.0) <= 5e-16;
    return {next_c, next_d, value * factor, terms + 1, select(same, settled + 1, I(0))};
  }
  B goes_on() const { return both(settled < 4, terms < most_terms); }
};

/// x^a e^-x sum_n x^n / (a (a + 1) ... (a + n)) / Gamma(a), for x < a + 1.
D lower_by_series(const D& a, const D& x) {
  const auto [sum, term, k] = WHILE(
      std::tuple(D(1.0), D(1.0), D(1.0)),
      [](const D& s, const D& t, const D& n) { return both(t > 1e-20 * s, n < double(most_terms)); },
      [&](const D& s, const D& t, const D& n) {
        const D next = t * (x / (a + n));
        return std::tuple(s + next, next, n + 1.0);
      });
  return exp(xlogy(a, x) - x - lgamma(a + 1.0)) * sum;
}
/// The complement by its continued fraction, for x >= a + 1.
D upper_by_fraction(const D& a, const D& x) {
  const D b = x + 1.0 - a;
  const Fraction found = WHILE(
      Fraction{D(1e300), 1.0 / b, 1.0 / b, I(0), I(0)}, [](const Fraction& f) { return f.goes_on(); },
      [&](const Fraction& f) {
        const D i = cast<double>(f.terms) + 1.0;
        return f.with(-i * (i - a), b + 2.0 * i);
      });
  return exp(a * log(x) - x - lgamma(a)) * found.value;
}
/// P(a, x), or Q where `upper`, for a > 0 and 0 < x < inf.
D gamma_ratio(const D& a, const D& x, bool upper) {
  return IF(
      x < a + 1.0,
      [&] {
        const D p = lower_by_series(a, x);
        return upper ? D(1.0 - p) : p;
      },
      [&] {
        const D q = upper_by_fraction(a, x);
        return upper ? q : D(1.0 - q);
      });
}
/// The same at the ends too; NaN outside.
D gamma_ratio_anywhere(const D& a, const D& x, bool upper) {
  const B inside = both(both(a > 0.0, x > 0.0), x < infinity);
  return IF(
      inside, [&] { return gamma_ratio(a, x, upper); },
      [&] {
        const D at_zero(upper ? 1.0 : 0.0), at_end(upper ? 0.0 : 1.0), none(nan);
        const D by_a = select(both(a == 0.0, x > 0.0), at_end, none);  // all of it lies at 0
        return select(a > 0.0, select(x == 0.0, at_zero, select(x == infinity, at_end, none)), by_a);
      });
}

}  // namespace

D gamma_ratio_of(const D& shape, const D& at, bool upper) {
  const auto value = [upper](D a, D x) { return gamma_ratio_anywhere(a, x, upper); };
  return custom_jvp(value, [value, upper](D a, D x, D da, D dx) {
    const D by_a = std::get<1>(jvp(value)(a, x, D(1.0), D(0.0)));
    const D density = exp(xlogy(a - 1.0, x) - x - lgamma(a));
    return std::tuple(value(a, x), by_a * da + (upper ? -density : density) * dx);
  })(shape, at);
}

namespace {

/// The fraction of I_x(a, b), which converges fast for x < (a + 1) / (a + b + 2).
D beta_fraction(const D& a, const D& b, const D& x) {
  const D first = 1.0 / (1.0 - (a + b) * x / (a + 1.0));
  const Fraction found = WHILE(
      Fraction{D(1.0), first, first, I(0), I(0)}, [](const Fraction& f) { return f.goes_on(); },
      [&](const Fraction& f) {
        const D m = cast<double>(f.terms / 2 + 1), two = a + 2.0 * m;
        const Fraction even = f.with(m * (b - m) * x / ((two - 1.0) * two), D(1.0));
        return even.with(-(a + m) * (a + b + m) * x / (two * (two + 1.0)), D(1.0));
      });
  return found.value;
}
D beta_ratio(const D& a, const D& b, const D& x) {
  const D front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
  return IF(
      x < (a + 1.0) / (a + b + 2.0), [&] { return front / a * beta_fraction(a, b, x); },
      [&] { return 1.0 - front / b * beta_fraction(b, a, 1.0 - x); });
}

}  // namespace

D beta_ratio_of(const D& first, const D& second, const D& at) {
  const auto value = [](D a, D b, D x) {
    const B inside = both(both(a > 0.0, b > 0.0), both(x > 0.0, x < 1.0));
    return IF(
        inside, [&] { return beta_ratio(a, b, x); },
        [&] {
          return select(both(a > 0.0, b > 0.0), select(x == 0.0, D(0.0), select(x == 1.0, D(1.0), D(nan))),
                        D(nan));
        });
  };
  return custom_jvp(value, [value](D a, D b, D x, D da, D db, D dx) {
    const D by_a = std::get<1>(jvp(value)(a, b, x, D(1.0), D(0.0), D(0.0))),
            by_b = std::get<1>(jvp(value)(a, b, x, D(0.0), D(1.0), D(0.0)));
    const D tail = select(b == 1.0, D(0.0), (b - 1.0) * log1p(-x));
    const D density = exp(xlogy(a - 1.0, x) + tail + lgamma(a + b) - lgamma(a) - lgamma(b));
    return std::tuple(value(a, b, x), by_a * da + by_b * db + density * dx);
  })(first, second, at);
}

}  // namespace lantern::core::special::detail
