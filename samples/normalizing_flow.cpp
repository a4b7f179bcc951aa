// A normalizing flow learns how points are spread over two moons (Dinh, Sohl-Dickstein and Bengio 2017,
// "Density estimation using Real NVP").
//
//   normalizing_flow
//   normalizing_flow --picture FILE    draws points of the data and of the model into an .svg file
//
// A chain of couplings turns points into normal numbers: each scales and shifts one coordinate by functions
// of the other, so that it can be inverted, and its determinant is known. What is learnt is the density
// itself. As couplings are plain functions, the same text also runs them backwards, to draw new points.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <lantern/nn.hpp>
#include <lantern/random.hpp>
#include <numbers>

#include "chart.hpp"
#include "lantern/runtime/progress.hpp"
#include "training.hpp"

namespace {

using namespace lantern;

/// As many linear layers of one size as there are couplings, in one tensor: the loop over couplings stays a
/// loop, and is compiled once.
template <class S>
struct Layers {
  nn::Parameter<S, dyn, dyn, dyn> weight;
  nn::Parameter<S, dyn, dyn> bias;

  static Layers init(std::int64_t count, std::int64_t in, std::int64_t out, nn::Generator& rng) {
    Layers l{nn::Parameter<S, dyn, dyn, dyn>({count, out, in}), nn::Parameter<S, dyn, dyn>({count, out})};
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    nn::uniform(l.weight, rng, -bound, bound), nn::uniform(l.bias, rng, -bound, bound);
    return l;
  }
  auto operator()(const auto& k, const auto& x) const { return nn::Linear<S>{weight.row(k), bias.row(k)}(x); }
};

template <class S>
struct Flow {
  Layers<S> first, second, scale, shift;

  static Flow init(std::int64_t couplings, std::int64_t width, nn::Generator& rng) {
    const auto layers = [&](std::int64_t in, std::int64_t out) {
      return Layers<S>::init(couplings, in, out, rng);
    };
    return {layers(1, width), layers(width, width), layers(width, 1), layers(width, 1)};
  }
  /// What coupling k does to a coordinate, by the other one: the logarithm of the factor, between -2 and 2,
  /// and what is added.
  auto coupling(const auto& k, const auto& other) const {
    const auto h = tanh(second(k, tanh(first(k, other))));
    return std::pair(2.0 * tanh(scale(k, h)), shift(k, h));
  }
};

using D = Rep<double>;
using I = Rep<std::int64_t>;
using Model = Flow<D>;
using State = nn::AdamState<Model>;
using Points = Rep<Tensor<double, dyn, dyn>>;  // of each a row of two coordinates

/// The points as normal numbers, and the logarithms of the determinants, a column. Each coupling moves one
/// coordinate, the next one the other.
std::pair<Points, Points> to_normal(const Model& m, const Points& x) {
  const Points a = x(all, range(0, 1)), b = x(all, range(1, 2));
  const auto [u, v, determinant] =
      FOR(0, m.first.weight.dim(0), std::tuple(a, b, zeros_like(a)),
          [&](I k, Points fixed, Points moved, Points sum) {
            const auto [scale, shift] = m.coupling(k, fixed);
            return std::tuple(Points(moved * exp(scale) + shift), fixed, Points(sum + scale));
          });
  return {concat<1>(u, v), determinant};
}
Points from_normal(Model m, Points z) {
  const Points a = z(all, range(0, 1)), b = z(all, range(1, 2));
  const I n = m.first.weight.dim(0);
  const auto [u, v] = FOR(0, n, std::tuple(a, b), [&](I k, Points moved, Points fixed) {
    const auto [scale, shift] = m.coupling(n - 1 - k, fixed);
    return std::tuple(fixed, Points((moved - shift) * exp(-scale)));
  });
  return concat<1>(u, v);
}
/// The logarithm of the density at each point.
Rep<Tensor<double, dyn>> log_density(Model m, Points x) {
  const auto [z, determinant] = to_normal(m, x);
  return squeeze<1>(determinant) - 0.5 * sum<1>(z * z) - std::log(2 * std::numbers::pi);
}
D loss(Model m, Points x) { return -mean(log_density(m, x)); }

std::tuple<D, Model, State> training_step(Model m, State s, Points x, D rate) {
  const auto [value, g] = value_and_grad([&](Model w) { return loss(w, x); })(m);
  const auto [m2, s2] = nn::adam(m, nn::clip_by_norm(g, 5), s, {.learning_rate = rate});
  return {value, m2, s2};
}
/// New points; and new points as normal numbers, made points and back, as far as they come back.
Points drawn(Model m, Rep<std::int64_t> key, Rep<std::int64_t> count) {
  return from_normal(m, random::normal<double>(key, count, 2));
}
D round_trip(Model m, Points x) { return max(abs(from_normal(m, to_normal(m, x).first) - x)); }

/// Points on two half circles, with some noise.
TensorValue<double> moons(std::int64_t count, nn::Generator& rng) {
  TensorValue<double> points({count, 2}), angle({count});
  nn::normal(points, rng, 0, 0.08);
  nn::uniform(angle, rng, 0, std::numbers::pi);
  for (std::size_t i = 0; i < angle.data.size(); ++i) {
    const double side = i % 2 == 0 ? 1 : -1;
    points[2 * i] += side * (std::cos(angle[i]) - 0.5);
    points[2 * i + 1] += side * (std::sin(angle[i]) - 0.25);
  }
  return points;
}
/// The loss of the normal distribution that fits best, coordinate by coordinate.
double normal_loss(const TensorValue<double>& points) {
  const double n = static_cast<double>(points.shape[0]);
  double nats = 1 + std::log(2 * std::numbers::pi);
  for (std::size_t j = 0; j < 2; ++j) {
    double sum = 0, squares = 0;
    for (std::size_t i = j; i < points.data.size(); i += 2)
      sum += points[i], squares += points[i] * points[i];
    nats += 0.5 * std::log(squares / n - sum / n * sum / n);
  }
  return nats;
}

constexpr int usual_epochs = 15, steps_in_an_epoch = 100;

int run(const Training& options, const std::filesystem::path& picture) {
  nn::Generator rng(options.seed);
  auto model = Flow<double>::init(8, 24, rng);
  auto state = nn::adam_state(model);
  const TensorValue<double> held_out = moons(2000, rng);
  const double wrong = check_derivative(loss, {.elements = 20})(nn::view(model), moons(4, rng));

  auto step = nn::in_place(compile(training_step, {.target = Target::cpp, .threads = options.threads}));
  LossCurve curve;
  const int steps = options.epochs * steps_in_an_epoch;
  Progress progress("training", static_cast<std::uint64_t>(steps));
  for (int i = 0; i < steps; ++i) {
    const double value =
        step(model, state, moons(200, rng), 5e-3 * (1 - static_cast<double>(i) / steps) + 1e-5);
    if (i % 10 == 0) curve.add(i, value);
    progress.step(fmt::format("{:.3f} nats", value));
  }
  progress.clear();
  finish(options, model, curve, "nats for a point");

  // The density over a grid of [-4, 4] x [-4, 4], all of which it sums to 1 over.
  constexpr std::int64_t across = 160;
  constexpr double cell = 8.0 / across;
  TensorValue<double> grid({across * across, 2});
  for (std::size_t i = 0; i < across * across; ++i) {
    grid[2 * i] = (static_cast<double>(i % across) + 0.5) * cell - 4;
    grid[2 * i + 1] = (static_cast<double>(i / across) + 0.5) * cell - 4;
  }
  const CompileOptions quickly{.target = Target::c};
  const auto density = compile(log_density, quickly);
  double total = 0, found = 0;
  for (const double v : density(nn::view(model), grid).data) total += cell * cell * std::exp(v);
  for (const double v : density(nn::view(model), held_out).data) found -= v / 2000;
  const double back = compile(round_trip, quickly)(nn::view(model), held_out), normal = normal_loss(held_out);
  fmt::print("derivatives beside differences {:.0e}, there and back {:.0e}, density in all {:.4f}\n", wrong,
             back, total);
  fmt::print("{:.3f} nats for a point held out; a normal distribution takes {:.3f}\n", found, normal);

  if (!picture.empty()) {
    const auto pairs = [](const TensorValue<double>& points) {
      Chart::Points p;
      for (std::size_t i = 0; i < points.data.size(); i += 2) p.emplace_back(points[i], points[i + 1]);
      return p;
    };
    Chart chart;
    chart.dots(pairs(held_out), "#bbb", "data", 1.5);
    chart.dots(pairs(compile(drawn, quickly)(nn::view(model), 1, 1000)), "#d62728", "model", 1.5);
    chart.write(picture, "two moons");
  }
  if (options.epochs < usual_epochs) return 0;
  if (wrong < 1e-6 && back < 1e-9 && std::abs(total - 1) < 0.01 && found < normal - 0.8) return 0;
  fmt::print("expected a density that sums to 1, and 0.8 nats less than the normal distribution takes\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Training options{.epochs = usual_epochs};
  std::filesystem::path picture;
  CLI::App app("Learns the density of points in the plane by a normalizing flow.");
  app.option_defaults()->always_capture_default();
  add_run_options(app, options, "of 100 steps, each with 200 new points");
  add_threads_option(app, options);
  app.add_option("--picture", picture, "draw points into this .svg file")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options, picture);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
