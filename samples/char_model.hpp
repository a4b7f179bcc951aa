// Character models: a recurrent cell reads a text character by character and says how probable each next one
// is. Shared by char_rnn.cpp and char_lstm.cpp, which have the cells.
//
// A. Karpathy, "The unreasonable effectiveness of recurrent neural networks" (2015), and Wang et al.,
// "Backpropagation with continuation callbacks" (NeurIPS 2018), section 4: 50 hidden numbers, 20 texts side
// by side, 20 steps at a time, gradients clipped at 5, Adagrad with a rate of 0.1.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <lantern/nn.hpp>
#include <lantern/random.hpp>
#include <limits>

#include "device.hpp"
#include "lantern/runtime/progress.hpp"
#include "text.hpp"
#include "training.hpp"

namespace characters {

using namespace lantern;

using I = Rep<std::int64_t>;
using T = Rep<Tensor<float>>;
using Codes = Rep<Tensor<std::int64_t, dyn, dyn>>;  ///< [steps, texts]

/// A cell has `input`, a row for each character (the product of a one-hot vector with a weight is a row of
/// the weight), `hidden` and `bias`, and makes of what a character gives and its state its next state; what
/// the state has first is what it shows.
template <class Cell, class S>
struct Model {
  Cell cell;
  nn::Linear<S> output;

  static Model init(std::int64_t characters, std::int64_t hidden, nn::Generator& rng) {
    return {Cell::init(characters, hidden, rng), nn::Linear<S>::init(hidden, characters, rng)};
  }
};

/// A cell's weights: uniform, by the hidden size, as PyTorch's.
template <class Cell>
Cell initial_cell(std::int64_t characters, std::int64_t hidden, std::int64_t gates, nn::Generator& rng) {
  Cell c{TensorValue<float>({characters, gates * hidden}), TensorValue<float>({hidden, gates * hidden}),
         TensorValue<float>({gates * hidden})};
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  nn::for_each_parameter(c, [&](const std::string&, auto& p) { nn::uniform(p, rng, -bound, bound); });
  return c;
}

template <template <class> class Cell>
typename Cell<float>::State no_memory(std::int64_t texts, std::int64_t hidden) {
  typename Cell<float>::State memory;
  for (auto& part : memory) part = TensorValue<float>({texts, hidden});
  return memory;
}

// ---- the programs

template <template <class> class Cell>
struct Programs {
  using M = Model<Cell<Rep<float>>, Rep<float>>;
  using Memory = typename Cell<Rep<float>>::State;
  using Optimiser = nn::AdagradState<M>;

  /// -log of the probability of each next character: summed over the steps, the mean of the texts; and what
  /// the cells know then.
  static std::tuple<Rep<float>, Memory> loss(const M& m, const Memory& start, const Codes& from,
                                             const Codes& to) {
    const I steps = from.dim(0), texts = from.dim(1), hidden = m.cell.hidden.dim(0);
    const T inputs = take<0>(m.cell.input, from) + m.cell.bias;
    const auto [end, shown] =
        FOR(0, steps, std::tuple(start, T(fill(Rep<float>(0.0f), steps, texts, hidden))),
            [&](const I& i, const Memory& before, const T& all) {
              const Memory after = m.cell.next(inputs.row(i), before);
              return std::tuple(after, all.set_part({i}, after[0]));
            });
    const T scores = m.output(reshape(shown, steps * texts, hidden));
    const auto total = nn::cross_entropy(scores, ravel(to), {.reduction = nn::Reduction::sum});
    return {total / cast<float>(texts), stop_gradient(end)};
  }

  /// One step of training, from one part of the texts to the next.
  static std::tuple<Rep<float>, M, Optimiser, Memory> step(M m, Optimiser s, Memory memory, Codes from,
                                                           Codes to, Rep<double> rate) {
    const auto of = [&](M w) { return loss(w, memory, from, to); };
    Memory nothing = memory;
    for (auto& part : nothing) part = zeros_like(part);
    const auto [made, g] = vjp(of)(m, std::tuple(Rep<float>(1.0f), nothing));
    const auto [m2, s2] = nn::adagrad(m, nn::clip_by_value(g, 5), s, {.learning_rate = rate});
    return {std::get<0>(made) / cast<float>(from.dim(0)), m2, s2, std::get<1>(made)};
  }

  /// `length` characters that the model says after a first one, each drawn by its probability; the lower the
  /// temperature, the more often the most probable one.
  static Rep<Array<std::int64_t>> write(M m, Memory start, I first, I length, Rep<float> temperature,
                                        random::Key key) {
    const auto [end, last, text] =
        FOR(0, length, std::tuple(start, first, Rep<Array<std::int64_t>>(fill(I(0), length))),
            [&](const I& i, const Memory& before, const I& code, const Rep<Array<std::int64_t>>& all) {
              const T input = take<0>(m.cell.input, fill(code, 1)) + m.cell.bias;
              const Memory after = m.cell.next(input, before);
              const T scores = m.output(after[0]) / temperature;
              const I next = random::categorical(random::fold_in(key, i), scores)(0);
              return std::tuple(after, next, all.set(i, next));
            });
    return text;
  }
};

// ---- the program that is run

struct Options {
  Training training{.epochs = 600};
  DeviceOptions device;
  std::int64_t hidden = 50, texts = 20, steps = 20, length = 400;
  double rate = 0.1;
  float temperature = 0.5f;

  bool large() const { return !training.data.empty(); }
};

/// Trains the model and says how; gives the loss at the end.
template <template <class> class Cell, class M>
double train(M& model, const Text& text, const Options& options) {
  using Clock = std::chrono::steady_clock;
  using Program = Programs<Cell>;
  auto state = nn::adagrad_state(model);
  auto memory = no_memory<Cell>(options.texts, options.hidden);
  Trained<typename Program::M, typename Program::Optimiser, typename Program::Memory> trained(options.device, model, state, memory);
  auto step = trained.step(
      compile(Program::step, {.target = options.device.target(), .threads = options.training.threads}));
  TensorValue<std::int64_t> from({options.steps, options.texts}), to = from;
  const std::size_t per_epoch = std::max<std::size_t>(1, text.size() / from.data.size());
  const std::size_t count = static_cast<std::size_t>(options.training.epochs) * per_epoch;
  const std::size_t reports = std::min<std::size_t>(10, count);
  std::vector<double> times;
  LossCurve curve;
  double recent = std::numeric_limits<double>::infinity();
  Progress progress("training", count);
  for (std::size_t i = 0; i < count; ++i) {
    text.part(i * static_cast<std::size_t>(options.steps), from, to);
    const auto start = Clock::now();
    const double loss = step(from, to, options.rate);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    recent = i == 0 ? loss : recent + std::max(0.01, 1.0 / static_cast<double>(i + 1)) * (loss - recent);
    progress.step(fmt::format("loss {:.3f}", recent));
    if ((i + 1) * reports / count == i * reports / count) continue;
    progress.clear();
    fmt::print("step {:6}: loss {:.3f} per character\n", i + 1, recent);
    curve.add(static_cast<double>(i + 1), recent);
  }
  const auto median = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), median, times.end());
  if (count > 0) fmt::print("a step takes {:.2f} ms\n", *median);
  trained.fetch();
  finish(options.training, model, curve, "loss per character");
  return recent;
}

/// Trains on the text, prints the loss and what the model then writes; 0 where it has learnt.
template <template <class> class Cell>
int run(int argc, char** argv, const char* about) {
  Options options;
  CLI::App app(about);
  app.option_defaults()->always_capture_default();
  add_options(app, options.training);
  add_device_option(app, options.device);
  const CLI::Range positive(1, 1'000'000);
  app.add_option("--hidden", options.hidden, "hidden size")->check(positive);
  app.add_option("--texts", options.texts, "texts side by side")->check(positive);
  app.add_option("--steps", options.steps, "characters between two updates")->check(positive);
  app.add_option("--rate", options.rate, "learning rate");
  app.add_option("--length", options.length, "characters that are written at the end")->check(positive);
  app.add_option("--temperature", options.temperature, "below 1: more often the most probable character");
  CLI11_PARSE(app, argc, argv);
  if (options.large() && app.count("--epochs") == 0) options.training.epochs = 3;
  try {
    const std::string characters =
        options.large() ? contents(options.training.data / "text/tinyshakespeare.txt") : sonnet;
    const Text text(characters);
    nn::Generator rng(options.training.seed);
    auto model = Model<Cell<float>, float>::init(text.characters(), options.hidden, rng);
    fmt::print("{} characters, {} different ones, {} parameters\n", text.size(), text.characters(),
               nn::parameter_count(model));
    const double loss = train<Cell>(model, text, options);

    const auto start = no_memory<Cell>(1, options.hidden);
    const auto write = compile(Programs<Cell>::write, {.target = Target::c});
    const auto key = static_cast<std::int64_t>(options.training.seed);
    const std::string written = text.characters_of(
        write(nn::view(model), nn::view(start), text.code(0), options.length, options.temperature, key));
    const double known = known_words(written, characters);
    fmt::print("\n{}\n\n{:.0f} % of these words are words of the text\n", written, 100 * known);
    if (options.large() || (loss < 0.5 && known > 0.8)) return 0;
    fmt::print("expected a loss below 0.5 and at least 80 % words of the text\n");
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
  }
  return 1;
}

}  // namespace characters
