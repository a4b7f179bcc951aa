// ResNet-50 learns to name pictures (He et al. 2016, "Deep residual learning for image recognition").
//
//   resnet50                 one stage of two blocks, few channels; textures drawn on the spot
//   resnet50 --data [DIR]    CIFAR-10: DIR/cifar10/{train_4000,test_1000}.bin, in its binary form
//
// The model is in resnet_model.hpp. For pictures of 32 x 32 points its first convolution has a window of 3 x
// 3 instead of 7 x 7, and there is no max-pooling behind it (the paper's own nets for CIFAR-10 begin so too,
// with stride 1). Loss, gradient, running statistics and SGD with momentum are one compiled function.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <lantern/nn.hpp>

#include "image_training.hpp"
#include "resnet_model.hpp"

namespace {

using namespace lantern;
using resnet::Images;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

/// A network with so many blocks in its stages, and what it is trained with.
template <std::size_t... blocks>
struct Net {
  using Model = resnet::ResNet<Rep<float>, blocks...>;
  using Running = resnet::Statistics<Rep<float>, blocks...>;
  using State = nn::SgdState<Model>;

  /// The loss of a batch; model, running statistics and state after a step.
  static std::tuple<Rep<float>, Model, Running, State> step(Model m, Running r, State s, Images x, Labels y,
                                                            Rep<double> rate) {
    const auto loss = [&](Model w) {
      const auto [scores, after] = resnet::classify(w, r, x, true);
      return std::tuple(nn::cross_entropy(scores, y), stop_gradient(after));
    };
    const auto [made, g] = vjp(loss)(m, std::tuple(Rep<float>(1.0f), nn::zeros_of(r)));
    const auto [m2, s2] = nn::sgd(m, g, s, {.learning_rate = rate, .momentum = 0.9, .weight_decay = 1e-4});
    return {std::get<0>(made), m2, std::get<1>(made), s2};
  }
  /// How many pictures get the right label.
  static Rep<std::int64_t> recognised(Model m, Running r, Images x, Labels y) {
    return count(Rep<Tensor<bool>>(argmax<1>(resnet::classify(m, r, x, false).first) == y));
  }

  static int run(const ImageTraining& options, const ImageTask& task, std::int64_t width, double expected) {
    nn::Generator rng(options.seed);
    auto [model, running] = resnet::init<blocks...>(task.train.channels, width, 10, rng);
    auto state = nn::sgd_state(model);

    const auto start = std::chrono::steady_clock::now();
    const CompileOptions compiled{.target = options.device.target(), .threads = options.threads, .cache = options.cache};
    Trained<Model, Running, State> trained(options.device, model, running, state);
    auto training_step = trained.step(compile(step, compiled));
    const auto right = compile(recognised, compiled);
    fmt::print("{} pictures, {} parameters; compiled in {:.1f} s\n", task.train.size(),
               nn::parameter_count(model),
               std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());

    LossCurve curve;
    const Learnt learnt = train_on_images(
        task, options, curve,
        [&](const Batch& b, double done) {
          return training_step(b.images, b.labels, options.rate * (1 - done));
        },
        [&](const Batch& b) { return trained.number(right, b.images, b.labels); });
    trained.fetch();
    finish(options, model, curve, "ResNet: cross-entropy of a batch");
    return verdict(learnt, options.usual ? expected : 0);
  }
};

}  // namespace

int main(int argc, char** argv) {
  ImageTraining options{{.epochs = 0}, {}, 0, 0, 0};
  CLI::App app("Trains ResNet-50 on small pictures.");
  app.option_defaults()->always_capture_default();
  add_image_options(app, options);
  CLI11_PARSE(app, argc, argv);
  const bool real = !options.data.empty();
  if (options.batch == 0) options.batch = real ? 50 : 20;
  if (options.rate == 0) options.rate = real ? 0.01 : 0.05;
  options.usual = options.epochs == 0 && options.steps == 0;
  if (options.epochs == 0) options.epochs = real ? 3 : 2;
  try {
    const ImageTask task = image_task(options, 1000, 24);
    return real ? Net<3, 4, 6, 3>::run(options, task, 64, 0.25) : Net<2>::run(options, task, 16, 0.6);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
