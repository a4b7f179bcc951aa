// SqueezeNet 1.1 learns to name pictures (Iandola et al. 2016, "SqueezeNet: AlexNet-level accuracy with 50x
// fewer parameters and < 0.5 MB model size").
//
//   squeezenet                 two of eight fire modules, few channels; textures drawn on the spot
//   squeezenet --data [DIR]    CIFAR-10: DIR/cifar10/{train_4000,test_1000}.bin, in its binary form
//
// The model is in squeezenet_model.hpp. For pictures as small as these its first convolution has stride 1 and
// padding 1 instead of stride 2, and there is no relu behind the last one, which classes that begin below 0
// would not survive. Loss, gradient and Adam (Kingma and Ba 2015) are one compiled function.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <lantern/nn.hpp>
#include <lantern/random.hpp>

#include "image_training.hpp"
#include "squeezenet_model.hpp"

namespace {

using namespace lantern;

using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

const SqueezeNetOptions small_pictures{.first = {.stride = 1, .padding = 1}, .rectified = false};

/// A network with so many fire modules, and how it is trained.
template <std::size_t modules>
struct Net {
  using Model = SqueezeNet<Rep<float>, modules>;
  using State = nn::AdamState<Model>;

  /// The loss of a batch, half of its features dropped, and model and state after a step.
  static std::tuple<Rep<float>, Model, State> step(Model m, State s, Images x, Labels y, Rep<double> rate) {
    const auto loss = [&](Model w) {
      const auto f = w.features(x, small_pictures);
      const auto noise = random::uniform<float>(s.steps, f.dim(0), f.dim(1), f.dim(2), f.dim(3));
      return nn::cross_entropy(w.classify(nn::dropout(f, noise, 0.5), small_pictures), y);
    };
    const auto [value, g] = value_and_grad(loss)(m);
    const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = rate});
    return {value, m2, s2};
  }
  /// How many pictures get the right label.
  static Rep<std::int64_t> recognised(Model m, Images x, Labels y) {
    return count(Rep<Tensor<bool>>(argmax<1>(m(x, small_pictures)) == y));
  }

  /// With 1 / part of the channels.
  static int run(const ImageTraining& options, const ImageTask& task, std::int64_t part, double expected) {
    nn::Generator rng(options.seed);
    auto model = SqueezeNet<float, modules>::init(task.train.channels, 10, rng, part);
    auto state = nn::adam_state(model);

    const auto start = std::chrono::steady_clock::now();
    const CompileOptions compiled{.target = options.device.target(), .threads = options.threads, .cache = options.cache};
    Trained<Model, State> trained(options.device, model, state);
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
    finish(options, model, curve, "SqueezeNet: cross-entropy of a batch");
    return verdict(learnt, options.usual ? expected : 0);
  }
};

}  // namespace

int main(int argc, char** argv) {
  ImageTraining options{{.epochs = 0}, {}, 0, 0, 0};
  CLI::App app("Trains SqueezeNet on small pictures.");
  app.option_defaults()->always_capture_default();
  add_image_options(app, options);
  CLI11_PARSE(app, argc, argv);
  const bool real = !options.data.empty();
  if (options.batch == 0) options.batch = real ? 50 : 20;
  if (options.rate == 0) options.rate = real ? 5e-4 : 3e-3;
  options.usual = options.epochs == 0 && options.steps == 0;
  if (options.epochs == 0) options.epochs = real ? 5 : 6;
  try {
    const ImageTask task = image_task(options, 1000, 24);
    return real ? Net<8>::run(options, task, 1, 0.25) : Net<2>::run(options, task, 4, 0.6);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
