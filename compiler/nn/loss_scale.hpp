// Losses that are scaled: for products of the GPU whose factors are rounded to half precision (.products = "f16"), where
// small gradients would become zero.
//
//   auto [loss, m2, s2, scale2] = nn::scaled_step(loss_of_model, m, s, scale, [&](Model g) { return nn::adam(m, g, s); });
//
// Micikevicius et al., "Mixed precision training" (ICLR 2018); torch.amp.GradScaler.
#pragma once

#include <limits>

#include "lantern/compiler/nn/optimizers.hpp"

namespace lantern::nn {

/// How a scale changes: times `backoff` after a gradient that is not finite, but not below 1; times `growth` after
/// `interval` steps in a row whose gradients are finite. With both 1 it stays as it is.
struct LossScaleOptions {
  double growth = 2, backoff = 0.5;
  std::int64_t interval = 2000;
};
/// A scale, and how many steps in a row had finite gradients. Powers of two make no rounding error.
template <class P>
struct LossScale {
  Number<P, double> scale;
  Number<P, std::int64_t> steps;
};
template <class P>
LossScale<P> loss_scale(const P&, double scale = 65536) {
  return {scale, 0};
}

/// Whether no number is infinite or NaN.
template <class P>
Rep<bool> all_finite(P p) {
  Rep<std::int64_t> others = 0;
  detail::update_each(
      [&]<class V>(const Rep<V>& g) {
        constexpr auto most = std::numeric_limits<typename core::detail::Traits<V>::element>::max();
        if constexpr (core::detail::Traits<V>::tensor)
          others = others + count(Rep<Tensor<bool>>(!(abs(g) <= most)));
        else
          others = others + select(abs(g) <= most, Rep<std::int64_t>(0), Rep<std::int64_t>(1));
      },
      p);
  return others == 0;
}

/// All numbers of `a` where the condition holds, else all of `b`: products of one structure and the same shapes.
template <class P>
P choose(const Rep<bool>& condition, const P& a, P b) {
  const core::Datums of_a = core::detail::flatten(a);
  core::Datums chosen = core::detail::flatten(b);
  std::size_t i = 0;
  core::detail::for_each_rep(b, [&]<class T>(const Rep<T>&) {
    chosen[i] = select(condition, Rep<T>(of_a[i]), Rep<T>(chosen[i])).datum();
    ++i;
  });
  std::span<const core::Datum> rest(chosen);
  core::detail::renew(b, rest);
  return b;
}

/// The scale after a step.
template <class P>
LossScale<P> next_scale(const LossScale<P>& s, const Rep<bool>& finite, const LossScaleOptions& o = {}) {
  const Rep<std::int64_t> steps = s.steps + 1;
  const Rep<bool> grows = finite & (steps >= o.interval);
  return {select(finite, select(grows, s.scale * o.growth, s.scale), max(s.scale * o.backoff, Rep<double>(1.0))),
          select(finite & !grows, steps, Rep<std::int64_t>(0))};
}

/// A step of an optimiser by the gradient of scale * loss(model), divided by the scale: the loss, and the new model, state
/// and scale. update(gradient) gives the new model and state; where the gradient is not finite, both stay as they are.
template <class F, class P, class S, class Update>
auto scaled_step(const F& loss, const P& model, const S& state, const LossScale<P>& scale, const Update& update,
                 const LossScaleOptions& o = {}) {
  using Loss = typename std::remove_cvref_t<decltype(loss(model))>::value_type;
  auto [value, gradient] = vjp(loss)(model, detail::as_element<Loss>(scale.scale));
  detail::update_each([&]<class V>(Rep<V>& g) { g = g * detail::as_element<V>(1.0 / scale.scale); }, gradient);
  const Rep<bool> finite = all_finite(gradient);
  const auto [new_model, new_state] = update(gradient);
  return std::tuple(value, choose(finite, P(new_model), model), choose(finite, S(new_state), state),
                    next_scale(scale, finite, o));
}

}  // namespace lantern::nn
