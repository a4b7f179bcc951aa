// A variational autoencoder learns to draw digits (Kingma and Welling 2014, "Auto-encoding variational
// Bayes").
//
//   variational_autoencoder                   ten glyphs in 12 x 12 points, made on the spot
//   variational_autoencoder --data [DIR]      MNIST, as mnist_cnn reads it
//   variational_autoencoder --picture FILE    writes digits that nothing has drawn to a PNG file
//
// The encoder gives mean and variance of a code for each picture; the code is drawn inside the program, as
// mean + deviation * noise, so that derivatives pass (the reparameterisation of the paper); the decoder says
// how likely each point is black. What is learnt is the evidence lower bound: of how many nats a picture has,
// at most. Noise, loss, gradient and Adam are one compiled function.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <lantern/data.hpp>
#include <lantern/nn.hpp>
#include <lantern/random.hpp>

#include "image_data.hpp"
#include "lantern/runtime/progress.hpp"
#include "picture.hpp"
#include "training.hpp"

namespace {

using namespace lantern;

template <class S>
struct Autoencoder {
  nn::Linear<S> features, mean, log_variance;  // the encoder
  nn::Linear<S> hidden, points;                // the decoder

  static Autoencoder init(std::int64_t size, std::int64_t width, std::int64_t code, nn::Generator& rng) {
    using Layer = nn::Linear<S>;
    return {Layer::init(size, width, rng), Layer::init(width, code, rng), Layer::init(width, code, rng),
            Layer::init(code, width, rng), Layer::init(width, size, rng)};
  }
  auto decode(const auto& code) const { return points(relu(hidden(code))); }
};

template <class E>
using Model = Autoencoder<Rep<E>>;
template <class E>
using Pictures = Rep<Tensor<E, dyn, dyn>>;  // of each picture a row of points, 0 or 1
using Key = Rep<std::int64_t>;

/// Minus the bound, in nats for each picture: what the decoder misses, and how far codes are from normal
/// numbers.
template <class E>
Rep<E> loss(Model<E> m, Pictures<E> x, Key key) {
  const auto h = relu(m.features(x));
  const auto mean = m.mean(h), log_variance = m.log_variance(h);
  const auto noise = random::normal<E>(key, mean.dim(0), mean.dim(1));
  const auto code = mean + exp(E(0.5) * log_variance) * noise;
  const Rep<E> missed = nn::binary_cross_entropy(m.decode(code), x, nn::Reduction::sum);
  const Rep<E> divergence = E(0.5) * sum(mean * mean + exp(log_variance) - log_variance - E(1));
  return (missed + divergence) / cast<E>(x.dim(0));
}

using State = nn::AdamState<Model<float>>;
std::tuple<Rep<float>, Model<float>, State> training_step(Model<float> m, State s, Pictures<float> x,
                                                          Key seed, Rep<double> rate) {
  const Key key = random::fold_in(seed, s.steps);
  const auto [value, g] = value_and_grad([&](Model<float> w) { return loss<float>(w, x, key); })(m);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = rate});
  return {value, m2, s2};
}
/// Pictures of codes that are drawn as if there were none to encode.
Pictures<float> dreams(Model<float> m, Key key, Rep<std::int64_t> count) {
  return sigmoid(m.decode(random::normal<float>(key, count, m.hidden.weight.dim(1))));
}

/// Every point black or white, 0 or 255.
LabelledImages black_and_white(LabelledImages images, int threshold) {
  for (auto& b : images.bytes) b = b > threshold ? 255 : 0;
  return images;
}
/// The loss of one who knows how often each point is white, and no more.
double independent_points(const LabelledImages& train, const LabelledImages& test) {
  const auto often = [](const LabelledImages& images) {
    std::vector<double> p(images.bytes_each());
    for (std::size_t i = 0; i < images.bytes.size(); ++i) p[i % p.size()] += images.bytes[i] / 255.0;
    for (double& x : p) x /= static_cast<double>(images.size());
    return p;
  };
  const std::vector<double> known = often(train), met = often(test);
  double nats = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const double p = std::clamp(known[i], 1e-4, 1 - 1e-4);
    nats -= met[i] * std::log(p) + (1 - met[i]) * std::log(1 - p);
  }
  return nats;
}

/// `across` times as many pictures side by side.
void write_pictures(const std::filesystem::path& file, const TensorValue<float>& pictures,
                    std::int64_t across, std::int64_t width, std::int64_t height) {
  Picture all(across * (width + 1) + 1, across * (height + 1) + 1, 1);
  std::fill(all.pixels.begin(), all.pixels.end(), std::uint8_t{96});
  for (std::int64_t i = 0; i < across * across; ++i)
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x)
        all.at(1 + i % across * (width + 1) + x, 1 + i / across * (height + 1) + y) =
            to_byte(pictures[static_cast<std::size_t>((i * height + y) * width + x)]);
  write_png(file, all);
}

/// The largest difference between derivatives and differences of a small autoencoder's loss, in double.
double derivative_error() {
  nn::Generator rng(3);
  const auto small = Autoencoder<double>::init(6, 4, 2, rng);
  TensorValue<double> x({3, 6});
  for (double& v : x.data) v = static_cast<double>(rng() % 2);
  return check_derivative(loss<double>)(nn::view(small), x, 7);
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int run(const Training& options, std::size_t batch_size, const std::filesystem::path& picture) {
  const bool real = !options.data.empty();
  const auto part = [&](const char* name, std::size_t count, std::uint64_t seed) {
    return real ? black_and_white(read_mnist(options.data / "mnist", name), 127)
                : black_and_white(draw_glyphs(count, seed), 72);
  };
  const LabelledImages train = part("train", 4000, options.seed), test = part("t10k", 1000, options.seed + 1);
  const Spread from_0_to_1{0, 255};
  Batches batches(train, batch_size, from_0_to_1, options.seed), held_out(test, batch_size, from_0_to_1);
  const auto size = static_cast<std::int64_t>(train.bytes_each());
  const auto points = [&](const Batch& b) {
    return TensorView<const float>(b.images.data.data(), {static_cast<std::int64_t>(batch_size), size});
  };

  nn::Generator rng(options.seed);
  auto model = Autoencoder<float>::init(size, real ? 400 : 128, real ? 20 : 12, rng);
  auto state = nn::adam_state(model);
  const double known = independent_points(train, test), error = derivative_error();
  fmt::print("{} pictures of {} x {}, {} parameters; derivatives beside differences: {:.0e}\n", train.size(),
             train.width, train.height, nn::parameter_count(model), error);
  const auto begin = Clock::now();
  const CompileOptions compiled{.target = Target::cpp, .threads = options.threads};
  auto step = nn::in_place(compile(training_step, compiled));
  const auto miss = compile(loss<float>, compiled);
  const auto dream = compile(dreams, compiled);
  fmt::print("compiled in {:.1f} s\n", seconds_since(begin));

  LossCurve curve;
  const auto seed = static_cast<std::int64_t>(options.seed);
  double found = 0;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    batches.shuffle();
    Progress progress(fmt::format("epoch {}", epoch), batches.count());
    const auto start = Clock::now();
    const double rate = (real ? 1e-3 : 2e-3) * (epoch > 0.8 * options.epochs ? 0.2 : 1);
    double sum = 0;
    for (std::size_t i = 0; i < batches.count(); ++i) {
      const double value = step(model, state, points(batches[i]), seed, rate);
      sum += value;
      if (i % 20 == 0) curve.add(static_cast<double>(state.steps), value);
      progress.step(fmt::format("{:.1f} nats", sum / static_cast<double>(i + 1)));
    }
    progress.clear();
    const double time = seconds_since(start), count = static_cast<double>(batches.count());
    found = 0;
    for (std::size_t i = 0; i < held_out.count(); ++i)
      found += miss(nn::view(model), points(held_out[i]), -1 - static_cast<std::int64_t>(i)) /
               static_cast<double>(held_out.count());
    if (epoch % std::max(1, options.epochs / 10) == 0 || epoch == options.epochs)
      fmt::print("epoch {:2}: {:.2f} s, {:.1f} nats; {:.1f} of pictures held out\n", epoch, time, sum / count,
                 found);
  }
  fmt::print("points by themselves: {:.1f} nats\n", known);
  if (!picture.empty())
    write_pictures(picture, dream(nn::view(model), seed, 100), 10, train.width, train.height);
  finish(options, model, curve, "nats for a picture, at most");
  const double expected = real ? 115 : 0.6 * known;
  if (options.epochs == 0 || (found < expected && error < 1e-6)) return 0;
  fmt::print("expected at most {:.0f} nats, and derivatives right to 1e-6\n", expected);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Training options{.epochs = 0};
  std::size_t batch_size = 100;
  std::filesystem::path picture;
  CLI::App app("Learns to draw digits by a variational autoencoder.");
  app.option_defaults()->always_capture_default();
  add_options(app, options);
  app.add_option("--batch", batch_size, "pictures in a step")->check(CLI::Range(1, 10'000));
  app.add_option("--picture", picture, "write 100 pictures of the model's own to this PNG file")
      ->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  if (options.epochs == 0) options.epochs = options.data.empty() ? 80 : 20;
  try {
    return run(options, batch_size, picture);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
