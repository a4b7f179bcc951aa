// A convolutional network learns to read digits (LeCun et al. 1998, "Gradient-based learning applied to
// document recognition").
//
//   mnist_cnn                 ten glyphs in 12 x 12 points, drawn on the spot
//   mnist_cnn --data [DIR]    MNIST: DIR/mnist/{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz
//
// Two convolutions, each with max-pooling, and two linear layers. Loss, gradient and Adam (Kingma and Ba
// 2015) are one compiled function. With --checkpoint FILE the state of training is written after each epoch,
// and a later run goes on from there.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <lantern/data.hpp>
#include <lantern/nn.hpp>

#include "cnn_model.hpp"
#include "device.hpp"
#include "image_data.hpp"
#include "lantern/runtime/progress.hpp"
#include "training.hpp"

namespace {

using namespace lantern;

using Model = Cnn<Rep<float>>;
using State = nn::AdamState<Model>;
using Images = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn>>;

/// The loss of a batch, the model and the state after a step.
std::tuple<Rep<float>, Model, State> training_step(Model m, State s, Images x, Labels y, Rep<double> rate) {
  const auto [loss, g] = value_and_grad([&](Model w) { return nn::cross_entropy(w(x), y); })(m);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = rate});
  return {loss, m2, s2};
}
/// How many pictures get the right label.
Rep<std::int64_t> recognised(Model m, Images x, Labels y) {
  return count(Rep<Tensor<bool>>(argmax<1>(m(x)) == y));
}

int usual_epochs(const Training& options) { return options.data.empty() ? 8 : 1; }

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int run(const Training& options, const DeviceOptions& device, std::size_t batch_size,
        const std::filesystem::path& checkpoint) {
  const bool real = !options.data.empty();
  const LabelledImages train =
      real ? read_mnist(options.data / "mnist", "train") : draw_glyphs(4000, options.seed);
  const LabelledImages test =
      real ? read_mnist(options.data / "mnist", "t10k") : draw_glyphs(1000, options.seed + 1);
  const Spread spread = spread_of(train);
  Batches batches(train, batch_size, spread, options.seed),
      held_out(test, std::min(test.size(), batch_size), spread);

  nn::Generator rng(options.seed);
  const CnnOptions options_of_model = real ? CnnOptions{} : CnnOptions{.window = 3, .features = 64};
  Cnn<float> model = Cnn<float>::init(train.channels, train.height, train.width, rng, options_of_model);
  nn::AdamState<Cnn<float>> state = nn::adam_state(model);
  if (exists(checkpoint)) nn::load(checkpoint, model, state);
  const auto per_epoch = static_cast<std::int64_t>(batches.count());
  fmt::print("{} pictures of {} x {}, {} parameters; {} steps made before\n", train.size(), train.width,
             train.height, nn::parameter_count(model), state.steps);

  const auto start = Clock::now();
  const CompileOptions compiled{.target = device.target(), .threads = options.threads};
  Trained<Model, State> trained(device, model, state);
  auto step = trained.step(compile(training_step, compiled));
  const auto right = compile(recognised, compiled);
  fmt::print("compiled in {:.1f} s\n", seconds_since(start));

  LossCurve curve;
  const auto test_accuracy = [&] {
    return accuracy(held_out, [&](const Batch& b) { return trained.number(right, b.images, b.labels); });
  };
  std::int64_t made = state.steps;
  double found = made > 0 ? test_accuracy() : 0;
  for (std::int64_t epoch = made / per_epoch + 1; epoch <= options.epochs; ++epoch) {
    batches.shuffle();
    Progress progress(fmt::format("epoch {}", epoch), batches.count());
    const auto begin = Clock::now();
    double recent = 0;
    for (std::size_t i = 0; i < batches.count(); ++i, ++made) {
      const Batch& batch = batches[i];
      const double done = static_cast<double>(made) / static_cast<double>(per_epoch * options.epochs);
      const double loss = step(batch.images, batch.labels, 3e-3 * (1 - done) + 1e-5);
      recent += std::max(0.02, 1.0 / static_cast<double>(i + 1)) * (loss - recent);
      if (i % 10 == 0) curve.add(static_cast<double>(made + 1), recent);
      progress.step(fmt::format("loss {:.3f}", recent));
    }
    progress.clear();
    const double time = seconds_since(begin);
    found = test_accuracy();
    fmt::print(
        "epoch {}: {:.2f} s, {:.0f} pictures per second; loss {:.4f}, {:.2f} % of {} test pictures right\n",
        epoch, time, static_cast<double>(batches.count() * batch_size) / time, recent, 100 * found,
        test.size());
    trained.fetch();
    if (!checkpoint.empty()) nn::save(checkpoint, model, state);
  }
  finish(options, model, curve, "cross-entropy of a batch");
  const double expected = real ? 0.985 : 0.97;
  if (found >= expected || options.epochs < usual_epochs(options)) return 0;
  fmt::print("expected at least {:.1f} % to be right\n", 100 * expected);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Training options{.epochs = 0};
  std::size_t batch_size = 100;
  std::filesystem::path checkpoint;
  DeviceOptions device;
  CLI::App app("Trains a convolutional network to read digits.");
  app.option_defaults()->always_capture_default();
  add_options(app, options);
  add_device_option(app, device);
  app.add_option("--batch", batch_size, "pictures in a step")->check(CLI::Range(1, 10'000));
  app.add_option("--checkpoint", checkpoint, "keep the state of training in this file, and go on from it");
  CLI11_PARSE(app, argc, argv);
  if (options.epochs == 0) options.epochs = usual_epochs(options);
  try {
    return run(options, device, batch_size, checkpoint);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
