// Optimisers: functions from parameters, their gradient and a state to new parameters and a new state.
//
// Each goes over all parameters of a model, a product of any structure. Formulas and defaults are PyTorch's.
// Learning rates are numbers or Reps, such as a schedule makes of the number of steps:
//
//   auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = nn::cosine_rate(s.steps, 1e-3, 1000)});
#pragma once

#include <numbers>

#include "lantern/compiler/nn/parameters.hpp"

namespace lantern::nn {

/// A learning rate.
struct Rate {
  Rate(double v) : value(v) {}
  Rate(const Rep<double>& v) : value(v) {}
  Rate(const Rep<float>& v) : value(cast<double>(v)) {}
  Rep<double> value;
};

namespace detail {

/// Numbers that multiply V's elements.
template <class V>
auto as_element(const Rep<double>& v) {
  return cast<typename core::detail::Traits<V>::element>(v);
}
template <class V>
auto as_element(double v) {
  return static_cast<typename core::detail::Traits<V>::element>(v);
}
/// The gradient of parameters of which the squared length is made smaller as well.
template <class V>
Rep<V> with_decay(const Rep<V>& gradient, const Rep<V>& parameter, double decay) {
  return decay == 0 ? gradient : Rep<V>(gradient + as_element<V>(decay) * parameter);
}

}  // namespace detail

/// SGD: g' = g + weight_decay p;  v' = momentum v + g';  p' = p - rate v', or with Nesterov's momentum
/// p' = p - rate (g' + momentum v') (Sutskever et al. 2013).
struct SgdOptions {
  Rate learning_rate = 1e-3;
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
template <class P>
struct SgdState {
  P velocity;
  Number<P, std::int64_t> steps;
};
template <class P>
SgdState<P> sgd_state(const P& p) {
  return {zeros_of(p), 0};
}
template <class P>
std::pair<P, SgdState<P>> sgd(P p, P gradient, SgdState<P> s, const SgdOptions& o = {}) {
  detail::update_each(
      [&]<class V>(Rep<V>& x, const Rep<V>& slope, Rep<V>& velocity) {
        const auto momentum = detail::as_element<V>(o.momentum);
        const Rep<V> g = detail::with_decay(slope, x, o.weight_decay);
        velocity = momentum * velocity + g;
        x = x - detail::as_element<V>(o.learning_rate.value) *
                    (o.nesterov ? Rep<V>(g + momentum * velocity) : velocity);
      },
      p, gradient, s.velocity);
  s.steps = s.steps + 1;
  return {p, s};
}
/// Without momentum there is no state.
template <class P>
P sgd(P p, P gradient, const Rate& learning_rate, double weight_decay = 0) {
  detail::update_each(
      [&]<class V>(Rep<V>& x, const Rep<V>& slope) {
        x = x - detail::as_element<V>(learning_rate.value) * detail::with_decay(slope, x, weight_decay);
      },
      p, gradient);
  return p;
}

/// Adagrad (Duchi, Hazan and Singer 2011): q' = q + g^2;  p' = p - rate / (1 + steps rate_decay) g /
/// (sqrt(q') + epsilon).
struct AdagradOptions {
  Rate learning_rate = 1e-2;
  double rate_decay = 0, weight_decay = 0, epsilon = 1e-10;
};
template <class P>
struct AdagradState {
  P square;
  Number<P, std::int64_t> steps;
};
template <class P>
AdagradState<P> adagrad_state(const P& p) {
  return {zeros_of(p), 0};
}
template <class P>
std::pair<P, AdagradState<P>> adagrad(P p, P gradient, AdagradState<P> s, const AdagradOptions& o = {}) {
  const Rep<double> rate = o.learning_rate.value / (1.0 + cast<double>(s.steps) * o.rate_decay);
  detail::update_each(
      [&]<class V>(Rep<V>& x, const Rep<V>& slope, Rep<V>& square) {
        const Rep<V> g = detail::with_decay(slope, x, o.weight_decay);
        square = square + g * g;
        x = x - detail::as_element<V>(rate) * g / (sqrt(square) + detail::as_element<V>(o.epsilon));
      },
      p, gradient, s.square);
  s.steps = s.steps + 1;
  return {p, s};
}

/// RMSProp (Tieleman and Hinton 2012): q' = smoothing q + (1 - smoothing) g^2;  v' = momentum v + g /
/// (sqrt(q') + epsilon); p' = p - rate v'.
struct RmsPropOptions {
  Rate learning_rate = 1e-2;
  double smoothing = 0.99, epsilon = 1e-8, weight_decay = 0, momentum = 0;
};
template <class P>
struct RmsPropState {
  P square, velocity;
  Number<P, std::int64_t> steps;
};
template <class P>
RmsPropState<P> rmsprop_state(const P& p) {
  return {zeros_of(p), zeros_of(p), 0};
}
template <class P>
std::pair<P, RmsPropState<P>> rmsprop(P p, P gradient, RmsPropState<P> s, const RmsPropOptions& o = {}) {
  detail::update_each(
      [&]<class V>(Rep<V>& x, const Rep<V>& slope, Rep<V>& square, Rep<V>& velocity) {
        const Rep<V> g = detail::with_decay(slope, x, o.weight_decay);
        square =
            detail::as_element<V>(o.smoothing) * square + detail::as_element<V>(1 - o.smoothing) * (g * g);
        const Rep<V> direction = g / (sqrt(square) + detail::as_element<V>(o.epsilon));
        velocity =
            o.momentum == 0 ? direction : Rep<V>(detail::as_element<V>(o.momentum) * velocity + direction);
        x = x - detail::as_element<V>(o.learning_rate.value) * velocity;
      },
      p, gradient, s.square, s.velocity);
  s.steps = s.steps + 1;
  return {p, s};
}

/// Adam (Kingma and Ba 2015), t the number of steps, this one included:
///
///   m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2
///   p' = p - rate m' / (1 - beta1^t) / (sqrt(v' / (1 - beta2^t)) + epsilon)
///
/// weight_decay is added to the gradient; adamw makes parameters smaller by rate weight_decay p instead
/// (Loshchilov and Hutter 2019).
struct AdamOptions {
  Rate learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
};
struct AdamWOptions {
  Rate learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
};
template <class P>
struct AdamState {
  P mean, square;
  Number<P, std::int64_t> steps;
};
template <class P>
AdamState<P> adam_state(const P& p) {
  return {zeros_of(p), zeros_of(p), 0};
}

namespace detail {
template <class P>
std::pair<P, AdamState<P>> adam(P p, P gradient, AdamState<P> s, const AdamOptions& o, bool decoupled) {
  s.steps = s.steps + 1;
  const Rep<double> t = cast<double>(s.steps);
  const Rep<double> rate = o.learning_rate.value / (1.0 - pow(Rep<double>(o.beta1), t));
  const Rep<double> scale = 1.0 / sqrt(1.0 - pow(Rep<double>(o.beta2), t));
  const Rep<double> keeps = 1.0 - o.learning_rate.value * o.weight_decay;
  update_each(
      [&]<class V>(Rep<V>& x, const Rep<V>& slope, Rep<V>& mean, Rep<V>& square) {
        const Rep<V> g = decoupled ? slope : with_decay(slope, x, o.weight_decay);
        mean = as_element<V>(o.beta1) * mean + as_element<V>(1 - o.beta1) * g;
        square = as_element<V>(o.beta2) * square + as_element<V>(1 - o.beta2) * (g * g);
        const Rep<V> from = decoupled ? Rep<V>(as_element<V>(keeps) * x) : x;
        x = from -
            as_element<V>(rate) * mean / (sqrt(square) * as_element<V>(scale) + as_element<V>(o.epsilon));
      },
      p, gradient, s.mean, s.square);
  return {p, s};
}
}  // namespace detail

template <class P>  ///< {p', state'} after a step along the gradient: AdamOptions has the formulas
std::pair<P, AdamState<P>> adam(P p, P gradient, AdamState<P> s, const AdamOptions& o = {}) {
  return detail::adam(std::move(p), std::move(gradient), std::move(s), o, false);
}
template <class P>  ///< the same, with weights that decay by themselves
std::pair<P, AdamState<P>> adamw(P p, P gradient, AdamState<P> s, const AdamWOptions& o = {}) {
  return detail::adam(std::move(p), std::move(gradient), std::move(s),
                      {o.learning_rate, o.beta1, o.beta2, o.epsilon, o.weight_decay}, true);
}

// ---- gradients made smaller

/// The Euclidean length of all floating numbers of a product, in double.
template <class P>
Rep<double> norm_of(P p) {
  Rep<double> squares = 0.0;
  detail::update_each(
      [&]<class V>(const Rep<V>& g) {
        if constexpr (core::detail::Traits<V>::tensor)
          squares = squares + cast<double>(sum(g * g));
        else
          squares = squares + cast<double>(g * g);
      },
      p);
  return sqrt(squares);
}
/// Times most / (length + 1e-6) where the length is more (Pascanu et al. 2013;
/// torch.nn.utils.clip_grad_norm_).
template <class P>
P clip_by_norm(P gradient, double most) {
  const Rep<double> factor = min(most / (norm_of(gradient) + 1e-6), Rep<double>(1.0));
  detail::update_each([&]<class V>(Rep<V>& g) { g = g * detail::as_element<V>(factor); }, gradient);
  return gradient;
}
/// Each number within -most and most.
template <class P>
P clip_by_value(P gradient, double most) {
  detail::update_each(
      [&]<class V>(Rep<V>& g) {
        using E = typename core::detail::Traits<V>::element;
        g = min(max(g, static_cast<E>(-most)), static_cast<E>(most));
      },
      gradient);
  return gradient;
}

// ---- learning rates for a number of steps that have been made

namespace detail {
inline void require_steps(const char* schedule, std::int64_t steps, std::int64_t least, const std::source_location& l) {
  if (steps < least)
    core::raise_at(core::here(l), std::string(schedule) + ": expected a number of steps of " + std::to_string(least) +
                                      " or more, got " + std::to_string(steps));
}
}  // namespace detail

/// rate factor^(steps / every), the quotient rounded down; every: 1 or more.
inline Rep<double> step_rate(const Rep<std::int64_t>& steps, double rate, std::int64_t every, double factor = 0.1,
                             std::source_location l = std::source_location::current()) {
  detail::require_steps("step_rate", every, 1, l);
  return rate * pow(Rep<double>(factor), cast<double>(steps / every));
}
/// rate factor^steps.
inline Rep<double> exponential_rate(const Rep<std::int64_t>& steps, double rate, double factor) {
  return rate * pow(Rep<double>(factor), cast<double>(steps));
}
/// From `rate` to `least` by half a cosine in `total` steps, and `least` from then on (Loshchilov and Hutter
/// 2017).
inline Rep<double> cosine_rate(const Rep<std::int64_t>& steps, double rate, std::int64_t total,
                               double least = 0,
                               std::source_location l = std::source_location::current()) {
  detail::require_steps("cosine_rate", total, 0, l);
  const Rep<double> part = min(cast<double>(steps) / static_cast<double>(total), Rep<double>(1.0));
  return least + (rate - least) * 0.5 * (1.0 + cos(std::numbers::pi * part));
}
/// `rate`, which may be a schedule, times (steps + 1) / total for the first `total` steps.
inline Rep<double> warm_up(const Rep<std::int64_t>& steps, const Rate& rate, std::int64_t total,
                           std::source_location l = std::source_location::current()) {
  detail::require_steps("warm_up", total, 0, l);
  return rate.value * min(cast<double>(steps + 1) / static_cast<double>(total), Rep<double>(1.0));
}

}  // namespace lantern::nn
