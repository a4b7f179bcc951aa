// SqueezeNet 1.1 (Iandola et al. 2016; version 1.1 is that of the authors' repository): fire modules between
// max-pooling, and no layer that is fully connected.
#pragma once

#include <array>
#include <lantern/nn.hpp>

/// Few channels, then more of them by windows of 1 x 1 and of 3 x 3, side by side.
template <class S>
struct Fire {
  lantern::nn::Conv<S> squeeze, expand1, expand3;

  static Fire init(std::int64_t in, std::int64_t squeezed, std::int64_t expanded,
                   lantern::nn::Generator& rng) {
    using Conv = lantern::nn::Conv<S>;
    return {Conv::init(in, squeezed, {1, 1}, rng), Conv::init(squeezed, expanded, {1, 1}, rng),
            Conv::init(squeezed, expanded, {3, 3}, rng)};
  }
  auto operator()(const auto& x) const {
    const auto s = relu(squeeze(x));
    return concat<1>(relu(expand1(s)), relu(expand3(s, {.padding = 1})));
  }
};

struct SqueezeNetOptions {
  lantern::core::ConvolutionOptions first{.stride = 2};
  bool rectified = true;  ///< what the last convolution says of a class is at least 0
};
/// The paper's has 8 fire modules; with fewer the last ones are left out.
template <class S, std::size_t modules = 8>
struct SqueezeNet {
  lantern::nn::Conv<S> first;
  std::array<Fire<S>, modules> fires;
  lantern::nn::Conv<S> last;

  /// With 1 / part of the channels inside. Weights as in He et al. 2015, the last ones as in the paper's
  /// models.
  static SqueezeNet init(std::int64_t channels, std::int64_t classes, lantern::nn::Generator& rng,
                         std::int64_t part = 1) {
    namespace nn = lantern::nn;
    SqueezeNet m;
    m.first = nn::Conv<S>::init(channels, 64 / part, {3, 3}, rng);
    std::int64_t in = 64 / part;
    for (std::size_t i = 0; i < modules; ++i) {
      const std::int64_t step = static_cast<std::int64_t>(i) / 2 + 1;  // 16 x 1, 2, 3, 4 squeezed, twice each
      m.fires[i] = Fire<S>::init(in, 16 * step / part, 64 * step / part, rng);
      in = 2 * (64 * step / part);
    }
    m.last = nn::Conv<S>::init(in, classes, {1, 1}, rng);
    nn::for_each_parameter(m, [&](const std::string& name, auto& p) {
      if (p.shape.size() == 1)
        nn::constant(p, 0);
      else if (name == "last.weight")
        nn::normal(p, rng, 0, 0.01);
      else
        nn::kaiming_uniform(p, rng);
    });
    return m;
  }

  /// What the last convolution sees of the pictures, [batch, channels, height, width]. The fire modules are
  /// calls of one function, which is compiled once.
  auto features(const auto& images, const SqueezeNetOptions& options = {}) const {
    using lantern::dyn;
    using Features = lantern::Rep<lantern::Tensor<float, dyn, dyn, dyn, dyn>>;
    const auto fire = lantern::FUN<Features(Fire<S>, Features)>(
        "fire", [](const Fire<S>& module, const Features& x) { return Features(module(x)); });
    const lantern::core::PoolOptions halve{.stride = 2};
    Features x = max_pool(relu(first(images, options.first)), 3, halve);
    for (std::size_t i = 0; i < modules; ++i) {
      if (i == 2 || i == 4) x = max_pool(x, 3, halve);
      x = fire(fires[i], x);
    }
    return x;
  }
  /// [batch, classes].
  auto classify(const auto& features, const SqueezeNetOptions& options = {}) const {
    const auto y = last(features);
    return mean<2, 3>(options.rectified ? relu(y) : y);
  }
  auto operator()(const auto& images, const SqueezeNetOptions& options = {}) const {
    return classify(features(images, options), options);
  }
};
