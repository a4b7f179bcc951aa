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
#pragma once

#include <numbers>

#include "lantern/compiler/random/random.hpp"
#include "lantern/compiler/special/loops.hpp"

namespace lantern::core::sample {

using random::Key;

namespace detail {

using random::detail::Law;
using special::detail::B;
using special::detail::both;
using special::detail::D;
using special::detail::I;

/// Draw number `number` of a key.
D drawn(Law law, const Key& key, const I& number);
/// Above 0 and below 1, draw number `number` of a key.
D open_uniform(const Key& key, std::int64_t number = 0);
/// The logarithm of a gamma number of any shape above 0.
D log_gamma_of(const Key& key, const D& shape);
D poisson_of(const Key& key, const D& mean);
D binomial_of(const Key& key, const D& times, const D& probability);

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
