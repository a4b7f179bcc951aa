// Random numbers of the distributions of density.hpp: sample::normal(key, mean, deviation),
// sample::gamma(key, {m, n}, shape, rate), ... One number, or a tensor of the sizes in braces;
// sample::gamma<float>(...) of float, else of double.
//
// Parameters are those of log_density: numbers of C++, Reps of the element type, or tensors of these sizes.
// Outside of their range the numbers mean nothing. Each element is a function of the key and its place alone,
// see random.hpp.
//
// What continuous laws draw is differentiated by the parameters (the reparameterisation of Kingma and
// Welling, 2014). It is the explicit one where a formula makes the number of a uniform or normal one; of
// gamma, and what is made of that, the implicit one, dz/da = -(dP/da) / p(z) with the distribution function
// P(a, z) (Figurnov, Mohamed & Mnih, "Implicit reparameterization gradients", 2018). Counts have no
// derivative.
//
// Sources: Marsaglia & Tsang, "A simple method for generating gamma variables", 2000; Hoermann, "The
// transformed rejection method for generating Poisson random variables" and "The generation of binomial
// random variates", both 1993; Devroye, "Non-Uniform Random Variate Generation", 1986.
#pragma once

#include <numbers>

#include "lantern/compiler/random/random.hpp"
#include "lantern/compiler/special/incomplete.hpp"

namespace lantern::core::sample {

using random::Key;

namespace detail {

using random::detail::Law;
using special::detail::B;
using special::detail::both;
using special::detail::D;
using special::detail::I;

inline D drawn(Law law, const Key& key, const I& number) {
  return D(random::detail::draw(law, key.datum(), number.datum(), ir::Kind::f64, {}));
}
/// Above 0 and below 1, draw number `number` of a key.
inline D open_uniform(const Key& key, std::int64_t number = 0) {
  return drawn(Law::uniform, key, I(number)) + 0x1p-54;
}

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
inline D gamma_value(const Key& key, const D& shape) {
  const D d = shape - 1.0 / 3, c = 1.0 / sqrt(9.0 * d);
  return first_accepted([&](const I& n) {
    const D x = drawn(Law::normal, key, 2 * n), u = drawn(Law::uniform, key, 2 * n + 1) + 0x1p-54;
    const D root = 1.0 + c * x, v = root * root * root, inside = select(v > 0.0, v, D(1.0));
    return std::pair(d * v, both(v > 0.0, log(u) < 0.5 * x * x + d - d * v + d * log(inside)));
  });
}
inline D gamma_of(const Key& key, const D& shape) {
  const auto value = [](Key k, D a) { return gamma_value(k, a); };
  return custom_jvp(value, [](Key k, D a, D da) {
    const D z = gamma_of(k, a);
    const auto ratio = [](D s, D x) { return special::detail::gamma_ratio_rule(false)(s, x); };
    const D by_a = std::get<1>(jvp(ratio)(a, z, D(1.0), D(0.0)));
    return std::tuple(z, -by_a / exp((a - 1.0) * log(z) - z - lgamma(a)) * da);
  })(key, shape);
}
/// The logarithm of a gamma number of any shape above 0: below 1 it is that of shape + 1 times u^(1 / shape).
inline D log_gamma_of(const Key& key, const D& shape) {
  const B small = shape < 1.0;
  const D more = select(small, log(open_uniform(random::fold_in(key, 1))) / shape, D(0.0));
  return log(gamma_of(key, select(small, shape + 1.0, shape))) + more;
}

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
inline D poisson_of(const Key& key, const D& mean) {
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
inline D binomial_of(const Key& key, const D& times, const D& probability) {
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

/// f of a key and parameters for each element.
template <FloatElement T, class F, class... P>
Rep<Tensor<T>> each(const F& f, const Key& key, std::initializer_list<Subscript> shape, const P&... p) {
  const Location loc = shape.size() == 0 ? Location{} : shape.begin()->loc;
  Datums sizes;
  for (const Subscript& s : shape) sizes.push_back(s.datum);
  const core::detail::Build build{loc};
  const auto require_shape = [&]<class Q>(const Q& q) {
    if constexpr (!std::is_arithmetic_v<Q>)
      if (q.datum().type().is_tensor()) {
        if (static_cast<std::size_t>(q.datum().type().rank()) != sizes.size())
          raise_at(loc,
                   "sample: expected a parameter of the sizes that are drawn, got " + q.datum().type().str());
        for (std::size_t k = 0; k < sizes.size(); ++k)
          core::detail::require((I(dimension_of(q.datum(), static_cast<int>(k), loc)) == I(sizes[k])).datum(),
                                "sample: expected a parameter of the sizes that are drawn", loc);
      }
  };
  (require_shape(p), ...);
  return Rep<Tensor<T>>(build.tabulate(core::detail::TypeOf<T>::get().kind(), sizes, [&](const Datums& at) {
    Datum place = core::detail::Build::integer(0);
    for (std::size_t d = 0; d < at.size(); ++d)
      place = d == 0 ? at[0] : build.add(build.mul(place, sizes[d]), at[d]);
    const Key own(random::detail::derived(key.datum(), place, 2, loc));
    return cast<T>(f(own, special::detail::element_of(p, at, loc)...)).datum();
  }));
}
template <FloatElement T, class F, class... P>
Rep<T> one(const F& f, const Key& key, const P&... p) {
  return cast<T>(f(random::fold_in(key, 0), special::detail::element_of(p, {}, {})...));
}
template <class P, class T>
concept Single = std::is_arithmetic_v<P> || std::same_as<P, Rep<T>>;
template <class P, class T>
concept Parameter = Single<P, T> ||
    (core::detail::RepType<P>&& std::same_as<special::detail::Element<typename P::value_type>, T>);

}  // namespace detail

#define LANTERN_SAMPLE_1(name, first, ...)                                                             \
  template <FloatElement T = double, detail::Single<T> P>                                              \
  [[nodiscard]] Rep<T> name(const Key& key, const P& first##_) {                                       \
    return detail::one<T>([](const Key& k, const detail::D& first) -> detail::D { __VA_ARGS__ }, key,  \
                          first##_);                                                                   \
  }                                                                                                    \
  template <FloatElement T = double, detail::Parameter<T> P>                                           \
  [[nodiscard]] Rep<Tensor<T>> name(const Key& key, std::initializer_list<Subscript> shape,            \
                                    const P& first##_) {                                               \
    return detail::each<T>([](const Key& k, const detail::D& first) -> detail::D { __VA_ARGS__ }, key, \
                           shape, first##_);                                                           \
  }
#define LANTERN_SAMPLE_2(name, first, second, ...)                                                           \
  template <FloatElement T = double, detail::Single<T> P, detail::Single<T> Q>                               \
  [[nodiscard]] Rep<T> name(const Key& key, const P& first##_, const Q& second##_) {                         \
    return detail::one<T>(                                                                                   \
        [](const Key& k, const detail::D& first, const detail::D& second) -> detail::D { __VA_ARGS__ }, key, \
        first##_, second##_);                                                                                \
  }                                                                                                          \
  template <FloatElement T = double, detail::Parameter<T> P, detail::Parameter<T> Q>                         \
  [[nodiscard]] Rep<Tensor<T>> name(const Key& key, std::initializer_list<Subscript> shape,                  \
                                    const P& first##_, const Q& second##_) {                                 \
    return detail::each<T>(                                                                                  \
        [](const Key& k, const detail::D& first, const detail::D& second) -> detail::D { __VA_ARGS__ }, key, \
        shape, first##_, second##_);                                                                         \
  }

LANTERN_SAMPLE_2(normal, mean, deviation,
                 return mean + deviation * detail::drawn(detail::Law::normal, k, detail::I(0));)
LANTERN_SAMPLE_2(log_normal, mean, deviation,
                 return exp(mean + deviation * detail::drawn(detail::Law::normal, k, detail::I(0)));)
LANTERN_SAMPLE_1(half_normal, deviation,
                 return deviation * abs(detail::drawn(detail::Law::normal, k, detail::I(0)));)
LANTERN_SAMPLE_2(uniform, lo, hi,
                 return lo + (hi - lo) * detail::drawn(detail::Law::uniform, k, detail::I(0));)
LANTERN_SAMPLE_1(exponential, rate, return detail::drawn(detail::Law::exponential, k, detail::I(0)) / rate;)
LANTERN_SAMPLE_2(gamma, shape_parameter, rate, return exp(detail::log_gamma_of(k, shape_parameter)) / rate;)
LANTERN_SAMPLE_2(inverse_gamma, shape_parameter, scale,
                 return scale * exp(-detail::log_gamma_of(k, shape_parameter));)
LANTERN_SAMPLE_1(chi_squared, freedom, return 2.0 * exp(detail::log_gamma_of(k, 0.5 * freedom));)
LANTERN_SAMPLE_2(beta, a, b,
                 return sigmoid(detail::log_gamma_of(random::fold_in(k, 2), a) -
                                detail::log_gamma_of(random::fold_in(k, 3), b));)
LANTERN_SAMPLE_1(student_t, freedom,
                 const detail::D z = detail::drawn(detail::Law::normal, random::fold_in(k, 2), detail::I(0));
                 return z * exp(0.5 * (log(0.5 * freedom) -
                                       detail::log_gamma_of(random::fold_in(k, 3), 0.5 * freedom)));)
LANTERN_SAMPLE_2(cauchy, centre, scale,
                 return centre + scale * tan(std::numbers::pi * (detail::open_uniform(k) - 0.5));)
LANTERN_SAMPLE_2(laplace, centre, scale, const detail::D u = detail::open_uniform(k);
                 return centre + scale * select(u < 0.5, log(2.0 * u), -log(2.0 * (1.0 - u)));)
LANTERN_SAMPLE_2(logistic, centre, scale, const detail::D u = detail::open_uniform(k);
                 return centre + scale * (log(u) - log1p(-u));)
LANTERN_SAMPLE_2(gumbel, centre, scale,
                 return centre + scale * detail::drawn(detail::Law::gumbel, k, detail::I(0));)
LANTERN_SAMPLE_2(weibull, shape_parameter, scale,
                 return scale * pow(-log(detail::open_uniform(k)), 1.0 / shape_parameter);)
LANTERN_SAMPLE_2(pareto, shape_parameter, least,
                 return least * exp(-log(detail::open_uniform(k)) / shape_parameter);)

// Counts, as floating-point numbers, which have no derivative.
LANTERN_SAMPLE_1(bernoulli, probability,
                 return select(detail::drawn(detail::Law::uniform, k, detail::I(0)) <
                                   stop_gradient(probability),
                               detail::D(1.0), detail::D(0.0));)
LANTERN_SAMPLE_2(binomial, times, probability,
                 return detail::binomial_of(k, stop_gradient(times), stop_gradient(probability));)
LANTERN_SAMPLE_1(poisson, mean, return detail::poisson_of(k, stop_gradient(mean));)
LANTERN_SAMPLE_1(geometric, probability,
                 return 1.0 + floor(log(detail::open_uniform(k)) / log1p(-stop_gradient(probability)));)
LANTERN_SAMPLE_2(negative_binomial, successes, probability, const detail::D p = stop_gradient(probability);
                 const detail::D mean = exp(detail::log_gamma_of(random::fold_in(k, 2),
                                                                 stop_gradient(successes))) *
                                        ((1.0 - p) / p);
                 return detail::poisson_of(random::fold_in(k, 3), mean);)
#undef LANTERN_SAMPLE_1
#undef LANTERN_SAMPLE_2

}  // namespace lantern::core::sample
