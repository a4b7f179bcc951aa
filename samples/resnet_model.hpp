// Residual networks of bottleneck blocks (He et al. 2016, "Deep residual learning for image recognition"),
// with batch normalisation (Ioffe and Szegedy 2015) behind each convolution. ResNet-50 has 3, 4, 6 and 3
// blocks.
//
// Running statistics are data beside the model, in structs of the same form. A block is a function of the
// program, staged once and called for each block of its kind: code and compile time do not grow with the
// depth.
#pragma once

#include <array>
#include <lantern/nn.hpp>
#include <tuple>
#include <utility>

namespace resnet {

using lantern::Rep;
using Images = Rep<lantern::Tensor<float, lantern::dyn, lantern::dyn, lantern::dyn, lantern::dyn>>;

/// A convolution without a bias, and normalisation.
template <class S>
struct ConvNorm {
  lantern::nn::Conv<S, 2, false> conv;
  lantern::nn::BatchNorm<S> norm;

  static ConvNorm init(std::int64_t in, std::int64_t out, std::int64_t window, lantern::nn::Generator& rng) {
    ConvNorm c{lantern::nn::Conv<S, 2, false>::init(in, out, {window, window}, rng),
               lantern::nn::BatchNorm<S>::init(out)};
    lantern::nn::kaiming_normal(c.conv.weight, rng);
    return c;
  }
  /// While training, `seen` becomes what it is after the batch.
  Images operator()(const Images& x, lantern::nn::RunningStatistics<S>& seen, bool training,
                    const lantern::core::ConvolutionOptions& options = {}) const {
    const auto y = conv(x, options);
    if (!training) return norm(y, seen);
    const auto [normalised, after] = norm.train(y, seen);
    seen = after;
    return normalised;
  }
};

/// 1 x 1 to few channels, 3 x 3, 1 x 1 to four times as many.
template <class S>
struct Bottleneck {
  ConvNorm<S> reduce, spatial, expand;

  static Bottleneck init(std::int64_t in, std::int64_t inside, lantern::nn::Generator& rng) {
    Bottleneck b{ConvNorm<S>::init(in, inside, 1, rng), ConvNorm<S>::init(inside, inside, 3, rng),
                 ConvNorm<S>::init(inside, 4 * inside, 1, rng)};
    lantern::nn::constant(b.expand.norm.weight,
                          0);  // a block begins as its shortcut (Goyal et al. 2017, 5.1)
    return b;
  }
};
template <class S>
struct BottleneckStatistics {
  lantern::nn::RunningStatistics<S> reduce, spatial, expand;

  static BottleneckStatistics init(std::int64_t inside) {
    using R = lantern::nn::RunningStatistics<S>;
    return {R::init(inside), R::init(inside), R::init(4 * inside)};
  }
};

/// Blocks of one width; the first has a shortcut of its own.
template <class S, std::size_t n>
struct Stage {
  ConvNorm<S> shortcut;
  std::array<Bottleneck<S>, n> blocks;
};
template <class S, std::size_t n>
struct StageStatistics {
  lantern::nn::RunningStatistics<S> shortcut;
  std::array<BottleneckStatistics<S>, n> blocks;
};

/// Each stage has twice the channels, and all but the first half the height and width, of the one before.
template <class S, std::size_t... n>
struct ResNet {
  ConvNorm<S> stem;
  std::tuple<Stage<S, n>...> stages;
  lantern::nn::Linear<S> output;
};
template <class S, std::size_t... n>
struct Statistics {
  lantern::nn::RunningStatistics<S> stem;
  std::tuple<StageStatistics<S, n>...> stages;
};

/// For pictures of so many channels; the first stage's blocks have `width` channels inside.
template <std::size_t... n>
std::pair<ResNet<float, n...>, Statistics<float, n...>> init(std::int64_t channels, std::int64_t width,
                                                             std::int64_t classes,
                                                             lantern::nn::Generator& rng) {
  using R = lantern::nn::RunningStatistics<float>;
  ResNet<float, n...> m;
  Statistics<float, n...> s;
  m.stem = ConvNorm<float>::init(channels, width, 3, rng);
  s.stem = R::init(width);
  std::int64_t in = width, inside = width;
  const auto fill = [&](auto& stage, auto& statistics) {
    stage.shortcut = ConvNorm<float>::init(in, 4 * inside, 1, rng);
    statistics.shortcut = R::init(4 * inside);
    for (std::size_t i = 0; i < stage.blocks.size(); ++i, in = 4 * inside) {
      stage.blocks[i] = Bottleneck<float>::init(in, inside, rng);
      statistics.blocks[i] = BottleneckStatistics<float>::init(inside);
    }
    inside *= 2;
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (fill(std::get<I>(m.stages), std::get<I>(s.stages)), ...);
  }(std::make_index_sequence<sizeof...(n)>{});
  m.output = lantern::nn::Linear<float>::init(in, classes, rng);
  return {m, s};
}

/// The three convolutions of a block.
inline Images inside(const Bottleneck<Rep<float>>& b, BottleneckStatistics<Rep<float>>& seen, const Images& x,
                     std::int64_t stride, bool training) {
  const Images few = relu(b.reduce(x, seen.reduce, training));
  const Images mixed = relu(b.spatial(few, seen.spatial, training, {.stride = stride, .padding = 1}));
  return b.expand(mixed, seen.expand, training);
}
/// The first block of a stage, and those behind it, as functions: of the block, its statistics and what comes
/// in, what comes out and the statistics after the batch.
inline auto first_block(std::int64_t stride, bool training) {
  using Norm = lantern::nn::RunningStatistics<Rep<float>>;
  using Seen = BottleneckStatistics<Rep<float>>;
  return lantern::FUN<std::tuple<Images, Norm, Seen>(ConvNorm<Rep<float>>, Bottleneck<Rep<float>>, Norm, Seen,
                                                     Images)>(
      "first_block",
      [=](ConvNorm<Rep<float>> shortcut, Bottleneck<Rep<float>> block, Norm norm, Seen seen, Images x) {
        const Images beside = shortcut(x, norm, training, {.stride = stride});
        const Images y = relu(inside(block, seen, x, stride, training) + beside);
        return std::tuple(y, norm, seen);
      });
}
inline auto next_block(bool training) {
  using Seen = BottleneckStatistics<Rep<float>>;
  return lantern::FUN<std::pair<Images, Seen>(Bottleneck<Rep<float>>, Seen, Images)>(
      "block", [=](Bottleneck<Rep<float>> block, Seen seen, Images x) {
        const Images y = relu(inside(block, seen, x, 1, training) + x);
        return std::pair(y, seen);
      });
}

/// The scores of the classes, [batch, classes], and the statistics after the batch.
template <std::size_t... n>
std::pair<Rep<lantern::Tensor<float, lantern::dyn, lantern::dyn>>, Statistics<Rep<float>, n...>> classify(
    const ResNet<Rep<float>, n...>& m, Statistics<Rep<float>, n...> s, const Images& images, bool training) {
  const auto first = first_block(1, training), halving = first_block(2, training);
  const auto next = next_block(training);
  Images x = relu(m.stem(images, s.stem, training, {.stride = 2, .padding = 1}));
  bool halve = false;
  const auto through = [&](const auto& stage, auto& seen) {
    std::tie(x, seen.shortcut, seen.blocks[0]) =
        (halve ? halving : first)(stage.shortcut, stage.blocks[0], seen.shortcut, seen.blocks[0], x);
    for (std::size_t i = 1; i < stage.blocks.size(); ++i)
      std::tie(x, seen.blocks[i]) = next(stage.blocks[i], seen.blocks[i], x);
    halve = true;
  };
  std::apply(
      [&](const auto&... stage) {
        std::apply([&](auto&... seen) { (through(stage, seen), ...); }, s.stages);
      },
      m.stages);
  return {m.output(mean<2, 3>(x)), s};
}

}  // namespace resnet
