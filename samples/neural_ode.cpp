// A neural differential equation learns how two kinds of animals live on one another (Chen, Rubanova,
// Bettencourt and Duvenaud 2018, "Neural ordinary differential equations").
//
//   neural_ode
//   neural_ode --picture FILE    draws the data and what was learnt into an .svg file
//
// The numbers of hares and lynxes follow the equations of Lotka and Volterra. A small network is to give the
// rates of their logarithms, and sees noisy numbers at 41 times, but no rates. solvers::odeint_adjoint
// integrates the network with steps of its own choice; the gradient comes from a second equation that runs
// backward in time, and nothing is kept of the steps. Integration, loss, gradient and Adam are one compiled
// function.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cmath>
#include <lantern/nn.hpp>
#include <lantern/solvers.hpp>
#include <vector>

#include "chart.hpp"
#include "lantern/runtime/progress.hpp"
#include "support.hpp"
#include "training.hpp"

namespace {

using namespace lantern;

using D = Rep<double>;
using I = Rep<std::int64_t>;
using Matrix = Rep<Tensor<double, dyn, dyn>>;
using Points = Rep<Tensor<double, dyn, dyn, dyn>>;

template <class S>
struct Network {
  nn::Linear<S> hidden, output;
};
using Model = Network<Rep<double>>;
using State = nn::AdamState<Model>;

/// dy/dt for each row of y.
Matrix rates(D, Matrix y, Model m) { return m.output(tanh(m.hidden(y))); }
/// The rows of y after a time.
Matrix later(Matrix y, D time, Model m) {
  return solvers::odeint_adjoint(rates, {.relative = 1e-5, .absolute = 1e-6}, y, 0.0, time, m).y;
}

/// Where the network leads to from the rows of seen[0], beside the rows of seen[1], seen[2], ..., each a time
/// `step` after the one before: the mean square of what it is off.
D loss(Model m, Points seen, D step) {
  const auto [sum, last] =
      FOR(1, seen.dim(0), std::tuple(D(0.0), Matrix(seen.row(0))), [&](I k, D missed, Matrix y) {
        const Matrix next = later(y, step, m);
        return std::tuple(missed + nn::mse(next, Matrix(seen.row(k))), next);
      });
  return sum / cast<double>(seen.dim(0) - 1);
}
std::tuple<D, Model, State> training_step(Model m, State s, Points seen, D step, D rate) {
  const auto [value, g] = value_and_grad([&](Model w) { return loss(w, seen, step); })(m);
  const auto [m2, s2] = nn::adam(m, g, s, {.learning_rate = rate});
  return {value, m2, s2};
}

// ---- the truth

constexpr int times = 41, ahead = 3;  // each point leads to the next `ahead` ones
constexpr double spacing = 0.375;

using Pair = std::array<double, 2>;
/// Logarithms of the numbers of hares and lynxes at all times, by the classical Runge-Kutta method in small
/// steps.
std::vector<Pair> animals() {
  const auto slope = [](const Pair& y) { return Pair{0.9 - 0.9 * std::exp(y[1]), std::exp(y[0]) - 1.0}; };
  const auto plus = [](const Pair& y, double h, const Pair& d) {
    return Pair{y[0] + h * d[0], y[1] + h * d[1]};
  };
  std::vector<Pair> all{{0.9, -0.3}};
  constexpr double h = spacing / 50;
  while (all.size() < times) {
    Pair y = all.back();
    for (int i = 0; i < 50; ++i) {
      const Pair a = slope(y), b = slope(plus(y, h / 2, a)), c = slope(plus(y, h / 2, b)),
                 d = slope(plus(y, h, c));
      for (std::size_t k = 0; k < 2; ++k) y[k] += h / 6 * (a[k] + 2 * b[k] + 2 * c[k] + d[k]);
    }
    all.push_back(y);
  }
  return all;
}

/// All parameters, one after the other.
std::vector<double*> numbers(Network<double>& model) {
  std::vector<double*> all;
  nn::for_each_parameter(model, [&](const std::string&, auto& p) {
    for (double& v : p.data) all.push_back(&v);
  });
  return all;
}
/// The gradient beside a difference of losses in a random direction, relative to the gradient's length. A
/// step of Adam at the rate 0 changes nothing but its state, which then holds a tenth of the gradient.
template <class Step>
double derivative_error(Step& step, Network<double> model, const TensorValue<double>& seen) {
  auto state = nn::adam_state(model);
  step(model, state, seen, spacing, 0.0);
  Random random;
  double length = 0, along = 0;
  std::vector<double> direction;
  for (const double* tenth : numbers(state.mean)) {
    direction.push_back(random());
    length += 100 * *tenth * *tenth, along += 10 * *tenth * direction.back();
  }
  const auto at = [&](double h) {
    Network<double> moved = model;
    const std::vector<double*> all = numbers(moved);
    for (std::size_t i = 0; i < all.size(); ++i) *all[i] += h * direction[i];
    return step(moved, state, seen, spacing, 0.0);
  };
  constexpr double h = 1e-4;
  return std::abs((at(h) - at(-h)) / (2 * h) - along) / std::sqrt(length);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr int usual_epochs = 200;

int run(const Training& options, const std::filesystem::path& picture) {
  const std::vector<Pair> truth = animals();
  nn::Generator rng(options.seed);
  TensorValue<double> noise({times, 2}), seen({1 + ahead, times - ahead, 2});
  nn::normal(noise, rng, 0, 0.02);
  for (std::size_t k = 0, at = 0; k <= ahead; ++k)
    for (std::size_t i = 0; i < times - ahead; ++i)
      for (std::size_t j = 0; j < 2; ++j) seen[at++] = truth[i + k][j] + noise[2 * (i + k) + j];

  // The code is large and short-lived: to optimise it would take longer than to train.
  const auto start = std::chrono::steady_clock::now();
  const CompileOptions quickly{.target = Target::c, .threads = options.threads};
  auto step = nn::in_place(compile(training_step, quickly));
  const auto next = compile(later, quickly);
  fmt::print("compiled in {:.1f} s\n", seconds_since(start));

  Network<double> model{nn::Linear<double>::init(2, 24, rng), nn::Linear<double>::init(24, 2, rng)};
  auto state = nn::adam_state(model);
  const double error = derivative_error(step, model, seen);
  fmt::print("gradient by the adjoint equation beside differences: {:.0e}\n", error);
  const int steps = options.epochs;
  LossCurve curve;
  Progress progress("training", static_cast<std::uint64_t>(steps));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) {
    const double part = static_cast<double>(i) / steps,
                 value = step(model, state, seen, spacing, 0.03 * (1 - part) + 1e-4);
    curve.add(i, value);
    progress.step(fmt::format("loss {:.6f}", value));
    if (i % std::max(1, steps / 5) == 0) {
      progress.clear();
      fmt::print("step {:4}: mean square {:.6f}\n", i, value);
    }
  }
  progress.clear();
  fmt::print("{:.2f} ms a step\n", 1e3 * seconds_since(begin) / std::max(1, steps));
  finish(options, model, curve, "mean square of the logarithms");

  // From the first point alone, through all times.
  std::vector<Pair> learnt{truth[0]};
  double square = 0;
  while (learnt.size() < times) {
    const Pair& y = learnt.back();
    const TensorValue<double> there =
        next(TensorView<const double>(y.data(), {1, 2}), spacing, nn::view(model));
    learnt.push_back({there[0], there[1]});
    for (std::size_t j = 0; j < 2; ++j)
      square += std::pow(there[j] - truth[learnt.size() - 1][j], 2) / (2 * times - 2);
  }
  fmt::print("logarithms off by {:.3f} along the way from the first point\n", std::sqrt(square));
  if (!picture.empty()) {
    Chart chart;
    const auto series = [&](const auto& value) {
      Chart::Points points;
      for (int i = 0; i < times; ++i)
        points.emplace_back(i * spacing, std::exp(value(static_cast<std::size_t>(i))));
      return points;
    };
    for (std::size_t j = 0; j < 2; ++j) {
      const char* const colour = j == 0 ? "#1f77b4" : "#d62728";
      chart.dots(series([&](std::size_t i) { return truth[i][j] + noise[2 * i + j]; }), colour,
                 j == 0 ? "hares" : "lynxes");
      chart.line(series([&](std::size_t i) { return learnt[i][j]; }), colour, "learnt");
    }
    chart.write(picture, "a neural differential equation", "time");
  }
  if (options.epochs < usual_epochs) return 0;
  if (std::sqrt(square) < 0.05 && error < 1e-4) return 0;
  fmt::print("expected the network to be off by less than 0.05, and derivatives right to 1e-4\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Training options{.epochs = usual_epochs};
  std::filesystem::path picture;
  CLI::App app("Learns the rates of a differential equation from points of its solution.");
  app.option_defaults()->always_capture_default();
  add_run_options(app, options, "steps of training, each with all points");
  add_threads_option(app, options);
  app.add_option("--picture", picture, "draw data and solution into this .svg file")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options, picture);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
