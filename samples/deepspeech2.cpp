// Speech becomes text: Amodei et al., "Deep Speech 2" (ICML 2016), one of the models of the Lantern paper
// (ICFP 2019, section 5.3), in small.
//
//   deepspeech2               made-up speech: a chord of tones for each letter, with noise
//   deepspeech2 --data DIR    spelled letters, numbers and commands: DIR/speech/an4
//
// A convolution over frequency and time, recurrent layers that read both ways, batch normalisation before
// each, and connectionist temporal classification, of batches of any lengths; loss, gradient, clipping, Adam
// and running statistics are one compiled function. Some recordings are learnt by heart; what is then read
// from them, by the most probable letter at each time, is printed with its edit distance.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <lantern/nn.hpp>

#include "device.hpp"
#include "lantern/runtime/progress.hpp"
#include "speech_data.hpp"
#include "training.hpp"

namespace {

using namespace lantern;

using I = Rep<std::int64_t>;
using T = Rep<Tensor<float>>;
using Batch = Rep<Tensor<float, dyn, dyn, dyn, dyn>>;  ///< [batch, 1, frames, frequencies]
using Numbers = Rep<Tensor<std::int64_t, dyn>>;
using Labels = Rep<Tensor<std::int64_t, dyn, dyn>>;

// ---- the model

constexpr std::size_t layers = 2;
constexpr std::int64_t window_frames = 11, window_frequencies = 41;

template <class S>
struct Layer {
  nn::BatchNorm<S> norm;
  nn::GRU<S, 1, true> recurrent;
};
template <class S>
struct Speech {
  nn::Conv<S, 2, false> convolution;
  nn::BatchNorm<S> norm;
  std::array<Layer<S>, layers> reads;
  nn::Linear<S> output;
};
template <class S>
struct Statistics {
  nn::RunningStatistics<S> norm;
  std::array<nn::RunningStatistics<S>, layers> reads;
};
using Model = Speech<Rep<float>>;
using Running = Statistics<Rep<float>>;
using Optimiser = nn::AdamState<Model>;

/// How many steps the network makes of so many frames.
auto steps_of(const auto& frames) { return (frames + 1) / 2; }

/// The logarithms of the classes' probabilities, [steps, batch, classes], and the running statistics after
/// the batch. What lies behind the end of a recording is kept zero.
std::pair<T, Running> classify(const Model& m, Running s, const Batch& x, const Numbers& frames,
                               bool training) {
  const auto normalised = [&](const nn::BatchNorm<Rep<float>>& norm, const T& t, auto& running) {
    if (!training) return norm(t, running);
    auto [y, after] = norm.train(t, running);
    running = after;
    return y;
  };
  T y = m.convolution(x, {.stride = 2, .padding = {window_frames / 2, window_frequencies / 2}});
  y = clip(normalised(m.norm, y, s.norm), 0.0f, 20.0f);
  y = permute<2, 0, 1, 3>(y);
  const I steps = y.dim(0), batch = y.dim(1);
  const Numbers ends = steps_of(frames);
  const auto only_present = [&](const T& t) {
    return T(
        tabulate([&](const I& i, const I& k, const I& f) { return select(i < ends(k), t(i, k, f), 0.0f); },
                 steps, batch, t.dim(2)));
  };
  y = only_present(reshape(y, steps, batch, y.dim(2) * y.dim(3)));
  for (std::size_t i = 0; i < layers; ++i) {
    const I width = y.dim(2);
    y = normalised(m.reads[i].norm, reshape(y, steps * batch, width), s.reads[i]);
    const auto [both, end] = m.reads[i].recurrent(reshape(y, steps, batch, width), ends);
    const auto [forwards, backwards] = split<2, 2>(both);
    y = forwards + backwards;
  }
  const T scores = m.output(reshape(y, steps * batch, y.dim(2)));
  return {log_softmax<2>(T(reshape(scores, steps, batch, scores.dim(1)))), s};
}

std::tuple<Rep<float>, Model, Optimiser, Running> training_step(Model m, Optimiser o, Running s, Batch x,
                                                                Numbers frames, Labels labels,
                                                                Numbers letters, Rep<double> rate) {
  const auto loss = [&](Model w) {
    const auto [y, after] = classify(w, s, x, frames, true);
    return std::tuple(nn::ctc(y, labels, Numbers(steps_of(frames)), letters), stop_gradient(after));
  };
  const auto [made, g] = vjp(loss)(m, std::tuple(Rep<float>(1.0f), nn::zeros_of(s)));
  const auto [m2, o2] = nn::adam(m, nn::clip_by_norm(g, 5), o, {.learning_rate = rate});
  return {std::get<0>(made), m2, o2, std::get<1>(made)};
}

/// The most probable class at each step: [steps, batch].
Rep<Tensor<std::int64_t>> most_probable(Model m, Running s, Batch x, Numbers frames) {
  return argmax<2>(classify(m, s, x, frames, false).first);
}

// ---- training

struct Options {
  Training training{.epochs = 60};
  DeviceOptions device;
  std::size_t utterances = 20;
  std::int64_t channels = 4, hidden = 32;
  double rate = 1e-2;
};

/// Of random numbers.
std::pair<Speech<float>, Statistics<float>> initial(const Options& options, std::int64_t frequencies,
                                                    nn::Generator& rng) {
  const std::int64_t channels = options.channels, hidden = options.hidden;
  Speech<float> model{nn::Conv<float, 2, false>::init(1, channels, {window_frames, window_frequencies}, rng),
                      nn::BatchNorm<float>::init(channels),
                      {},
                      nn::Linear<float>::init(hidden, std::ssize(audio::alphabet), rng)};
  Statistics<float> running{nn::RunningStatistics<float>::init(channels), {}};
  std::int64_t in = channels * steps_of(frequencies);
  for (std::size_t i = 0; i < layers; ++i, in = hidden) {
    model.reads[i] = {nn::BatchNorm<float>::init(in), nn::GRU<float, 1, true>::init(in, hidden, rng)};
    running.reads[i] = nn::RunningStatistics<float>::init(in);
  }
  return {model, running};
}

int run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  nn::Generator rng(options.training.seed);
  const auto data = audio::corpus(audio::recordings(options.training.data, options.utterances, rng));
  auto [model, running] = initial(options, data.spectra.shape[3], rng);
  auto state = nn::adam_state(model);
  fmt::print("{} recordings of up to {} frames, {} frequencies; {} parameters\n", data.spectra.shape[0],
             data.spectra.shape[2], data.spectra.shape[3], nn::parameter_count(model));

  // What takes few steps is sooner done with code that is sooner made.
  const CompileOptions compiled{.target = options.device.target(),
                                .opt = options.training.data.empty() ? 1 : 3,
                                .threads = options.training.threads};
  Trained<Model, Optimiser, Running> trained(options.device, model, state, running);
  auto step = trained.step(compile(training_step, compiled));
  std::vector<double> times;
  LossCurve curve;
  const int epochs = options.training.epochs;
  {
    Progress progress("training", static_cast<std::uint64_t>(epochs));
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      const auto start = Clock::now();
      const float loss =
          step(data.spectra, data.frames, data.labels, data.letters, options.rate);
      times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
      curve.add(epoch, loss);
      progress.step(fmt::format("loss {:.3f}", loss));
      if (epoch * 10 / epochs == (epoch - 1) * 10 / epochs) continue;
      progress.clear();
      fmt::print("step {:4}: loss {:.3f} per letter\n", epoch, loss);
    }
  }
  const auto median = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), median, times.end());
  if (epochs > 0) fmt::print("a step takes {:.1f} ms\n", *median);
  trained.fetch();
  finish(options.training, model, curve, "CTC loss per letter");

  const auto read = compile(most_probable, {.target = Target::c})(nn::view(model), nn::view(running),
                                                                  data.spectra, data.frames);
  std::size_t wrong = 0, spoken = 0;
  for (std::size_t i = 0; i < data.transcripts.size(); ++i) {
    const std::string& said = data.transcripts[i];
    const std::string text = audio::spelled(read, i, steps_of(data.frames[i]));
    const std::size_t distance = audio::edit_distance(text, said);
    wrong += distance;
    spoken += said.size();
    fmt::print("{}{}\n", text, distance == 0 ? "" : fmt::format("  ({}: {} wrong)", said, distance));
  }
  fmt::print("edit distance {} of {} letters\n", wrong, spoken);
  if (wrong == 0) return 0;
  fmt::print("expected all letters to be right\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a small Deep Speech 2 on recordings, until it knows them by heart.");
  app.option_defaults()->always_capture_default();
  add_options(app, options.training);
  add_device_option(app, options.device);
  const CLI::Range positive(1, 1'000'000);
  app.add_option("--utterances", options.utterances, "how many recordings, at most")->check(positive);
  app.add_option("--channels", options.channels, "of the convolution")->check(positive);
  app.add_option("--hidden", options.hidden, "hidden size of the recurrent layers")->check(positive);
  app.add_option("--rate", options.rate, "learning rate");
  CLI11_PARSE(app, argc, argv);
  const auto unless_given = [&](const char* name, auto& option, auto value) {
    if (!options.training.data.empty() && app.count(name) == 0) option = value;
  };
  unless_given("--epochs", options.training.epochs, 200);
  unless_given("--channels", options.channels, 8);
  unless_given("--hidden", options.hidden, 64);
  try {
    return run(options);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
