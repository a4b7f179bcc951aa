// Logarithms of the densities of probability distributions: log_density::normal(x, mean, deviation), ...
//
// x is a floating-point number or tensor, whose elements are taken one by one; parameters are numbers of C++, Reps of the
// same element type, or tensors of x's shape. Outside of a distribution's range the logarithm is -inf, with slope 0.
// Parameters outside of theirs give NaN where the formula has no number there; they are not checked. Counts are
// floating-point numbers as well: cast<double>(n). Names and parameters are those of the textbook; where peers differ,
// it is said.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "lantern/compiler/staging/functions.hpp"

namespace lantern::core::log_density {

namespace detail {
namespace core = ::lantern::core;

template <class T>
using Element = typename core::detail::Traits<T>::element;
template <class T>
concept Real = FloatElement<Element<T>>;
/// A parameter beside an x of type T.
template <class P, class T>
concept ParameterOf = std::is_arithmetic_v<P> || std::same_as<P, Rep<T>> || std::same_as<P, Rep<Element<T>>>;

/// As a Rep, so that functions of it can be taken.
template <class T, class P>
auto parameter(const P& p) {
  if constexpr (std::is_arithmetic_v<P>) return Rep<Element<T>>(static_cast<Element<T>>(p));
  else return p;
}
template <class T>
Rep<T> zeros_of(const Rep<T>& x) {
  if constexpr (core::detail::Traits<T>::tensor) return zeros_like(x);
  else return Rep<T>(T(0));
}
/// A number for each element of x.
template <class T, class P>
Rep<T> beside(const Rep<T>& x, const P& p) {
  if constexpr (std::same_as<P, Rep<T>>) return p;
  else return zeros_of(x) + p;
}
template <class T, class C>
Rep<T> choose(const Rep<C>& c, const Rep<T>& a, const Rep<T>& b, std::source_location l) {
  return Rep<T>(perform({Opcode::select_, 0, here(l)}, {c.datum(), a.datum(), b.datum()}));
}
/// The value in the range, -inf outside.
template <class T, class C>
Rep<T> within(const Rep<C>& range, const Rep<T>& value, std::source_location l) {
  return choose(range, value, zeros_of(value) - std::numeric_limits<Element<T>>::infinity(), l);
}
/// a log(b), 0 where a is 0.
template <class T, class B>
Rep<T> xlogy(const Rep<T>& a, const B& b, std::source_location l) {
  return choose(a == Element<T>(0), zeros_of(a), a * log(beside(a, b), l), l);
}
/// a log(1 + b), 0 where a is 0.
template <class T, class B>
Rep<T> xlog1py(const Rep<T>& a, const B& b, std::source_location l) {
  return choose(a == Element<T>(0), zeros_of(a), a * log1p(beside(a, b), l), l);
}
/// The logarithm of the beta function.
template <class A, class B>
auto lbeta(const A& a, const B& b, std::source_location l) {
  return lgamma(a, l) + lgamma(b, l) - lgamma(a + b, l);
}
}  // namespace detail

#define LANTERN_DENSITY_2(name, first, second)                                                                  \
  template <class T, detail::ParameterOf<T> P, detail::ParameterOf<T> Q>                                        \
    requires(detail::Real<T>)                                                                                   \
  [[nodiscard]] Rep<T> name(const Rep<T>& x, const P& first##_, const Q& second##_,                             \
                            std::source_location l = std::source_location::current()) {                         \
    using E [[maybe_unused]] = detail::Element<T>;                                                              \
    const auto first = detail::parameter<T>(first##_);                                                          \
    const auto second = detail::parameter<T>(second##_);
#define LANTERN_DENSITY_1(name, first)                                                                          \
  template <class T, detail::ParameterOf<T> P>                                                                  \
    requires(detail::Real<T>)                                                                                   \
  [[nodiscard]] Rep<T> name(const Rep<T>& x, const P& first##_,                                                 \
                            std::source_location l = std::source_location::current()) {                         \
    using E [[maybe_unused]] = detail::Element<T>;                                                              \
    const auto first = detail::parameter<T>(first##_);
#define LANTERN_DENSITY_END }

/// Of all numbers, with this mean and standard deviation.
LANTERN_DENSITY_2(normal, mean, deviation)
  const Rep<T> z = (x - mean) / deviation;
  return E(-0.5) * z * z - log(deviation, l) - E(0.5) * E(std::log(2.0 * std::numbers::pi));
LANTERN_DENSITY_END
/// exp of a normal number of this mean and standard deviation (scipy.stats.lognorm with scale = exp(mean)).
LANTERN_DENSITY_2(log_normal, mean, deviation)
  const auto range = x > E(0);
  const Rep<T> inside = detail::choose(range, x, detail::zeros_of(x) + E(1), l), logarithm = log(inside, l);
  return detail::within(range, normal(logarithm, mean, deviation, l) - logarithm, l);
LANTERN_DENSITY_END
/// The size of a normal number of mean 0 and this standard deviation.
LANTERN_DENSITY_1(half_normal, deviation)
  return detail::within(x >= E(0), normal(x, E(0), deviation, l) + E(std::numbers::ln2), l);
LANTERN_DENSITY_END
/// From lo to hi, both included.
LANTERN_DENSITY_2(uniform, lo, hi)
  return detail::within((x >= lo) & (x <= hi), detail::zeros_of(x) - log(hi - lo, l), l);
LANTERN_DENSITY_END
/// Mean 1 / rate (scipy.stats.expon takes the scale, 1 / rate).
LANTERN_DENSITY_1(exponential, rate)
  return detail::within(x >= E(0), log(rate, l) - rate * x, l);
LANTERN_DENSITY_END
/// Mean shape / rate (scipy.stats.gamma takes the scale, 1 / rate).
LANTERN_DENSITY_2(gamma, shape, rate)
  const auto range = x >= E(0);
  const Rep<T> inside = detail::choose(range, x, detail::zeros_of(x) + E(1), l);
  return detail::within(range,
                        detail::xlogy(detail::zeros_of(x) + (shape - E(1)), inside, l) - rate * inside +
                            (shape * log(rate, l) - lgamma(shape, l)),
                        l);
LANTERN_DENSITY_END
/// The inverse of a gamma number: mean scale / (shape - 1).
LANTERN_DENSITY_2(inverse_gamma, shape, scale)
  const auto range = x > E(0);
  const Rep<T> inside = detail::choose(range, x, detail::zeros_of(x) + E(1), l);
  return detail::within(
      range, shape * log(scale, l) - lgamma(shape, l) - (shape + E(1)) * log(inside, l) - scale / inside, l);
LANTERN_DENSITY_END
/// The sum of squares of so many normal numbers of mean 0 and deviation 1.
LANTERN_DENSITY_1(chi_squared, freedom)
  return gamma(x, E(0.5) * freedom, E(0.5), l);
LANTERN_DENSITY_END
/// From 0 to 1: mean a / (a + b).
LANTERN_DENSITY_2(beta, a, b)
  const auto range = (x >= E(0)) & (x <= E(1));
  const Rep<T> inside = detail::choose(range, x, detail::zeros_of(x) + E(0.5), l);
  return detail::within(range,
                        detail::xlogy(detail::zeros_of(x) + (a - E(1)), inside, l) +
                            detail::xlog1py(detail::zeros_of(x) + (b - E(1)), -inside, l) - detail::lbeta(a, b, l),
                        l);
LANTERN_DENSITY_END
/// With so many degrees of freedom, centre 0 and scale 1.
LANTERN_DENSITY_1(student_t, freedom)
  const auto half = E(0.5) * (freedom + E(1));
  return lgamma(half, l) - lgamma(E(0.5) * freedom, l) - E(0.5) * log(freedom * E(std::numbers::pi), l) -
         half * log1p(x * x / freedom, l);
LANTERN_DENSITY_END
LANTERN_DENSITY_2(cauchy, centre, scale)
  const Rep<T> z = (x - centre) / scale;
  return -log1p(z * z, l) - log(scale * E(std::numbers::pi), l);
LANTERN_DENSITY_END
LANTERN_DENSITY_2(laplace, centre, scale)
  return -(abs(x - centre, l) / scale) - log(E(2) * scale, l);
LANTERN_DENSITY_END
LANTERN_DENSITY_2(logistic, centre, scale)
  const Rep<T> z = abs(x - centre, l) / scale;  // it is even
  return -z - E(2) * softplus(-z, l) - log(scale, l);
LANTERN_DENSITY_END
/// Of maxima: mean centre + 0.5772 scale.
LANTERN_DENSITY_2(gumbel, centre, scale)
  const Rep<T> z = (x - centre) / scale;
  return -z - exp(-z, l) - log(scale, l);
LANTERN_DENSITY_END
LANTERN_DENSITY_2(weibull, shape, scale)
  const auto range = x >= E(0);
  const Rep<T> z = detail::choose(range, x, detail::zeros_of(x) + E(1), l) / scale;
  return detail::within(range,
                        log(shape / scale, l) + detail::xlogy(detail::zeros_of(x) + (shape - E(1)), z, l) -
                            pow(z, detail::zeros_of(x) + shape),
                        l);
LANTERN_DENSITY_END
/// From `least` on: mean shape least / (shape - 1).
LANTERN_DENSITY_2(pareto, shape, least)
  const auto range = x >= least;
  const Rep<T> inside = detail::choose(range, x, detail::beside(x, least), l);
  return detail::within(range, log(shape, l) + shape * log(least, l) - (shape + E(1)) * log(inside, l), l);
LANTERN_DENSITY_END

/// 0 or 1; the probability of 1.
LANTERN_DENSITY_1(bernoulli, probability)
  return detail::within((x == E(0)) | (x == E(1)),
                        detail::xlogy(x, probability, l) + detail::xlog1py(E(1) - x, -probability, l), l);
LANTERN_DENSITY_END
/// How often, of so many times, what has this probability comes.
LANTERN_DENSITY_2(binomial, times, probability)
  const auto range = (x >= E(0)) & (x <= times) & (x == floor(x, l));
  const Rep<T> inside = detail::choose(range, x, detail::zeros_of(x), l), others = times - inside;
  return detail::within(range,
                        lgamma(times + E(1), l) - lgamma(inside + E(1), l) - lgamma(others + E(1), l) +
                            detail::xlogy(inside, probability, l) + detail::xlog1py(others, -probability, l),
                        l);
LANTERN_DENSITY_END
/// How many come, where so many come in the mean.
LANTERN_DENSITY_1(poisson, mean)
  const auto range = (x >= E(0)) & (x == floor(x, l));
  const Rep<T> inside = detail::choose(range, x, detail::zeros_of(x), l);
  return detail::within(range, detail::xlogy(inside, mean, l) - mean - lgamma(inside + E(1), l), l);
LANTERN_DENSITY_END
/// The number of the first try that succeeds, from 1 on (PyTorch's is one less).
LANTERN_DENSITY_1(geometric, probability)
  const auto range = (x >= E(1)) & (x == floor(x, l));
  const Rep<T> before = detail::choose(range, x - E(1), detail::zeros_of(x), l);
  return detail::within(range, detail::xlog1py(before, -probability, l) + log(probability, l), l);
LANTERN_DENSITY_END
/// How many fail before so many succeed (scipy.stats.nbinom).
LANTERN_DENSITY_2(negative_binomial, successes, probability)
  const auto range = (x >= E(0)) & (x == floor(x, l));
  const Rep<T> inside = detail::choose(range, x, detail::zeros_of(x), l);
  return detail::within(range,
                        lgamma(inside + successes, l) - lgamma(inside + E(1), l) - lgamma(successes, l) +
                            successes * log(probability, l) + detail::xlog1py(inside, -probability, l),
                        l);
LANTERN_DENSITY_END

#undef LANTERN_DENSITY_2
#undef LANTERN_DENSITY_1
#undef LANTERN_DENSITY_END

}  // namespace lantern::core::log_density
