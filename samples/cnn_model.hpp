// A small convolutional network for digits (LeCun et al. 1998): two convolutions, each with max-pooling, and two linear layers.
#pragma once

#include <lantern/nn.hpp>

struct CnnOptions {
  std::int64_t window = 5, channels = 16;  ///< of the first convolution; the second has twice the channels
  std::int64_t features = 128;             ///< between the linear layers
};

template <class S>
struct Cnn {
  lantern::nn::Conv<S> first, second;
  lantern::nn::Linear<S> hidden, output;

  /// For pictures of a size, and ten classes.
  static Cnn init(std::int64_t channels, std::int64_t height, std::int64_t width, lantern::nn::Generator& rng,
                  const CnnOptions& o = {}) {
    namespace nn = lantern::nn;
    const auto after = [&](std::int64_t size) { return ((size - o.window + 1) / 2 - o.window + 1) / 2; };
    return {nn::Conv<S>::init(channels, o.channels, {o.window, o.window}, rng),
            nn::Conv<S>::init(o.channels, 2 * o.channels, {o.window, o.window}, rng),
            nn::Linear<S>::init(2 * o.channels * after(height) * after(width), o.features, rng),
            nn::Linear<S>::init(o.features, 10, rng)};
  }

  auto operator()(const auto& images) const {
    const auto small = max_pool(relu(first(images)), 2);
    const auto smaller = max_pool(relu(second(small)), 2);
    const auto features = reshape(smaller, smaller.dim(0), smaller.dim(1) * smaller.dim(2) * smaller.dim(3));
    return output(relu(hidden(features)));
  }
};
