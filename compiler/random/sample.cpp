// Numbers of distributions by rejection, inversion and formulas. Sources: Marsaglia & Tsang, "A simple method for
// generating gamma variables", 2000; Hoermann, "The transformed rejection method for generating Poisson random variables"
// and "The generation of binomial random variates", both 1993; Devroye, "Non-Uniform Random Variate Generation", 1986.
#include "lantern/compiler/random/sample.hpp"

#include <algorithm>

#include "lantern/compiler/special/incomplete.hpp"

namespace lantern::core::sample::detail {

D drawn(Law law, const Key& key, const I& number) {
  return D(random::detail::draw(law, key.datum(), number.datum(), ir::Kind::f64, {}));
}
/// Above 0 and below 1, draw number `number` of a key.
D open_uniform(const Key& key, std::int64_t number) {
  return drawn(Law::uniform, key, I(number)) + 0x1p-54;
}

namespace {

/// The first candidate that is accepted: candidate(number) gives a number and whether it is.
template <class F>
D first_accepted(const F& candidate) {
  const auto [value, found, tries] = WHILE(
      std::tuple(D(0.0), B(false), I(0)),
      [](const D&, const B& done, const I& n) { return both(!done, n < 10'000); },
      [&](const D&, const B&, const I& n) {
        const auto [v, good] = candidate(n);
        return std::tuple(D(v), B(good), n + 1);
      });
  return value;
}

/// Of shape a >= 1 and rate 1, without a derivative.
D gamma_value(const Key& key, const D& shape) {
  const D d = shape - 1.0 / 3, c = 1.0 / sqrt(9.0 * d);
  return first_accepted([&](const I& n) {
    const D x = drawn(Law::normal, key, 2 * n), u = drawn(Law::uniform, key, 2 * n + 1) + 0x1p-54;
    const D root = 1.0 + c * x, v = root * root * root, inside = select(v > 0.0, v, D(1.0));
    return std::pair(d * v, both(v > 0.0, log(u) < 0.5 * x * x + d - d * v + d * log(inside)));
  });
}
D gamma_of(const Key& key, const D& shape) {
  return custom_jvp([](Key k, D a) { return gamma_value(k, a); }, [](Key k, D a, D da) {
    const D z = gamma_of(k, a);
    const auto ratio = [](D s, D x) { return special::detail::gamma_ratio_of(s, x, false); };
    const D by_a = std::get<1>(jvp(ratio)(a, z, D(1.0), D(0.0)));
    return std::tuple(z, -by_a / exp((a - 1.0) * log(z) - z - lgamma(a)) * da);
  })(key, shape);
}

}  // namespace

/// The logarithm of a gamma number of any shape above 0: below 1 it is that of shape + 1 times u^(1 / shape).
D log_gamma_of(const Key& key, const D& shape) {
  const B small = shape < 1.0;
  const D more = select(small, log(open_uniform(random::fold_in(key, 1))) / shape, D(0.0));
  return log(gamma_of(key, select(small, shape + 1.0, shape))) + more;
}

namespace {

/// By adding probabilities up: p(0) = first, p(k) = p(k - 1) ratio(k).
template <class F>
D by_inversion(const D& u, const D& first, const F& ratio) {
  const auto [k, p, rest] = WHILE(
      std::tuple(D(0.0), first, u - first),
      [](const D& n, const D&, const D& left) { return both(left > 0.0, n < 1000.0); },
      [&](const D& n, const D& last, const D& left) {
        const D next = last * ratio(n + 1.0);
        return std::tuple(n + 1.0, next, left - next);
      });
  return k;
}

}  // namespace

D poisson_of(const Key& key, const D& mean) {
  return IF(
      mean < 10.0,
      [&] { return by_inversion(open_uniform(key), exp(-mean), [&](const D& k) { return mean / k; }); },
      [&] {
        const D b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, alpha = 1.1239 + 1.1328 / (b - 3.4),
                quick = 0.9277 - 3.6224 / (b - 2.0);
        return first_accepted([&](const I& n) {
          const D u = drawn(Law::uniform, key, 2 * n) + 0x1p-54 - 0.5,
                  v = drawn(Law::uniform, key, 2 * n + 1) + 0x1p-54, us = 0.5 - abs(u);
          const D k = floor((2.0 * a / us + b) * u + mean + 0.43), inside = max(k, 0.0);
          const B likely =
              log(v * alpha / (a / (us * us) + b)) <= -mean + inside * log(mean) - lgamma(inside + 1.0);
          const B fast = both(us >= 0.07, v <= quick);
          return std::pair(k, both(k >= 0.0, !both(!fast, !likely)));
        });
      });
}
D binomial_of(const Key& key, const D& times, const D& probability) {
  const B much = probability > 0.5;
  const D p = select(much, 1.0 - probability, probability), r = p / (1.0 - p);
  const D k = IF(
      times * p < 10.0,
      [&] {
        return by_inversion(open_uniform(key), exp(times * log1p(-p)),
                            [&](const D& n) { return max(times - n + 1.0, 0.0) / n * r; });
      },
      [&] {
        const D deviation = sqrt(times * p * (1.0 - p)), b = 1.15 + 2.53 * deviation,
                a = -0.0873 + 0.0248 * b + 0.01 * p;
        const D quick = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * deviation, mode = floor((times + 1.0) * p);
        const D at_mode = lgamma(mode + 1.0) + lgamma(times - mode + 1.0);
        return first_accepted([&](const I& n) {
          const D u = drawn(Law::uniform, key, 2 * n) + 0x1p-54 - 0.5,
                  v = drawn(Law::uniform, key, 2 * n + 1) + 0x1p-54, us = 0.5 - abs(u);
          const D found = floor((2.0 * a / us + b) * u + times * p + 0.5),
                  inside = min(max(found, 0.0), times);
          const B likely = log(v * alpha / (a / (us * us) + b)) <= at_mode - lgamma(inside + 1.0) -
                                                                       lgamma(times - inside + 1.0) +
                                                                       (inside - mode) * log(r);
          const B fast = both(us >= 0.07, v <= quick);
          return std::pair(found, both(found == inside, !both(!fast, !likely)));
        });
      });
  const D most = min(k, times);  // sums of probabilities end a rounding below 1
  return select(much, times - most, most);
}

}  // namespace lantern::core::sample::detail
