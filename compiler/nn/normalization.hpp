// Normalisation: BatchNorm (Ioffe and Szegedy 2015), LayerNorm (Ba et al. 2016).
#pragma once

#include <numeric>

#include "lantern/compiler/nn/layers.hpp"
#include "lantern/compiler/tensor/build.hpp"

namespace lantern::nn {

/// Mean and variance of each channel, as training saw them: data beside the model, and no parameters of it.
template <class S>
struct RunningStatistics {
  Parameter<S, dyn> mean, variance;

  static RunningStatistics init(std::int64_t channels) {
    return {Parameter<S, dyn>({channels}, 0), Parameter<S, dyn>({channels}, 1)};
  }
};

struct BatchNormOptions {  ///< of batch normalisation; the defaults are PyTorch's
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< the weight of a batch in the running statistics
};

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, channel by channel: x of [batch, channels,
/// size...].
template <class S>
struct BatchNorm {
  Parameter<S, dyn> weight, bias;  ///< [channels]

  static BatchNorm init(std::int64_t channels) {
    return {Parameter<S, dyn>({channels}, 1), Parameter<S, dyn>({channels}, 0)};
  }

  /// While training, by mean and variance of the batch: y, and the running statistics after it. The variance
  /// is the mean squared distance; that of the running statistics is divided by one less, as in PyTorch. Error: a
  /// channel of one number.
  template <core::detail::FloatTensor X>
  std::pair<detail::Values<X>, RunningStatistics<S>> train(const Rep<X>& x,
                                                           const RunningStatistics<S>& running,
                                                           const BatchNormOptions& o = {},
                                                           std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    using E = core::detail::element_t<X>;
    using T = detail::Values<X>;
    std::vector<int> axes(static_cast<std::size_t>(rank_of(x)) - 1);
    std::iota(axes.begin(), axes.end(), 1);
    axes[0] = 0;
    const T mean(core::detail::mean_along(x.datum(), {axes, false}, {}));
    const T variance(core::detail::mean_along(square(x - per_channel(mean, x)).datum(), {axes, false}, {}));
    Rep<std::int64_t> n = std::int64_t{1};
    for (const int d : axes) n = n * x.dim(d);
    core::detail::Build{}.require((n > 1).datum(),
                                  "BatchNorm: expected more than one number in each channel while training, got {}",
                                  {n.datum()});
    const Rep<E> count = cast<E>(n), unbiased = count / (count - 1.0);
    const E m = static_cast<E>(o.momentum), rest = static_cast<E>(1 - o.momentum);
    return {normalised(x, mean, variance, o.epsilon),
            RunningStatistics<S>{rest * running.mean + m * stop_gradient(mean),
                                 rest * running.variance + m * unbiased * stop_gradient(variance)}};
  }
  /// Afterwards, by the running statistics.
  template <core::detail::FloatTensor X>
  detail::Values<X> operator()(const Rep<X>& x, const RunningStatistics<S>& running,
                               const BatchNormOptions& o = {},
                               std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    rank_of(x);
    return normalised(x, running.mean, running.variance, o.epsilon);
  }

 private:
  template <class X>
  static int rank_of(const Rep<X>& x) {
    const int rank = x.datum().type().rank();
    if (rank < 2)
      core::raise_at({}, "BatchNorm: expected a tensor [batch, channels, ...], got " + x.datum().type().str());
    return rank;
  }
  template <class T>
  static T square(const T& t) {
    return t * t;
  }
  /// A vector over channels beside x: [channels, 1, ...].
  template <class V, class X>
  static detail::Values<X> per_channel(const Rep<V>& v, const Rep<X>& x) {
    std::vector<int> places(static_cast<std::size_t>(x.datum().type().rank()) - 2);
    std::iota(places.begin(), places.end(), 1);
    return detail::Values<X>(core::detail::unsqueeze(v.datum(), places, {}));
  }
  template <class X, class V>
  detail::Values<X> normalised(const Rep<X>& x, const Rep<V>& mean, const Rep<V>& variance,
                               double epsilon) const {
    const auto scale = weight / sqrt(variance + epsilon);
    return (x - per_channel(mean, x)) * per_channel(scale, x) + per_channel(bias, x);
  }
};

/// y = (x - mean) / sqrt(variance + epsilon) * weight + bias, mean and variance over the last dimension.
template <class S>
struct LayerNorm {
  Parameter<S, dyn> weight, bias;  ///< [features]

  static LayerNorm init(std::int64_t features) {
    return {Parameter<S, dyn>({features}, 1), Parameter<S, dyn>({features}, 0)};
  }

  template <core::detail::FloatTensor X>
  detail::Values<X> operator()(const Rep<X>& x, double epsilon = 1e-5,
                               std::source_location l = std::source_location::current()) const {
    const detail::Caller caller(l);
    const detail::Values<X> centred = x - mean<-1>(x, core::named::keep);
    return centred / sqrt(mean<-1>(centred * centred, core::named::keep) + epsilon) * weight + bias;
  }
};

}  // namespace lantern::nn
