// A Gaussian process: how smooth a curve is, and how noisy its points are, learned from the points alone.
//
//   gaussian_process
//   gaussian_process --curve FILE    draws the likelihood over the steps into an .svg file
//
// The likelihood takes a Cholesky factor. Libraries have one, so it is called instead of written again:
// `external` makes a plain C function one of Reps, and custom_vjp gives it a rule, here another C function.
// check_derivative compares the rule with differences, before anything is built on it. <lantern/linalg.hpp> has
// this very function, over LAPACK: the same likelihood in its words is beside it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <lantern/lantern.hpp>
#include <lantern/linalg.hpp>
#include <span>
#include <vector>

#include "chart.hpp"
#include "lantern/runtime/progress.hpp"
#include "support.hpp"

using namespace lantern;

/// a, of n rows, becomes l with l l^T = a. What lies above the diagonal is not read; it becomes zero.
extern "C" void cholesky(int64_t n, double* a) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) {
      double sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i < j ? 0 : i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
}
/// The adjoint of l becomes that of a. Source: I. Murray, "Differentiation of the Cholesky decomposition",
/// 2016.
extern "C" void cholesky_adjoint(int64_t n, const double* l, double* adjoint) {
  for (int64_t j = n; j-- > 0;)
    for (int64_t i = n; i-- > 0;) {
      double& a = adjoint[i * n + j];
      if (i > j) {
        a /= l[j * n + j];
        adjoint[j * n + j] -= a * l[i * n + j];
        for (int64_t k = 0; k < j; ++k) {
          adjoint[i * n + k] -= a * l[j * n + k];
          adjoint[j * n + k] -= a * l[i * n + k];
        }
      } else if (i == j) {
        a *= 0.5 / l[j * n + j];
        for (int64_t k = 0; k < j; ++k) adjoint[j * n + k] -= 2 * a * l[j * n + k];
      } else {
        a = 0;
      }
    }
}

using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using Matrix = Tensor<double, dyn, dyn>;

const auto factor = external<int64_t, Matrix>("cholesky", cholesky);
const auto adjoint = external<int64_t, Matrix, Matrix>("cholesky_adjoint", cholesky_adjoint);

M lower(M a) {
  return custom_vjp(
      sig<Matrix(Matrix)>([](M m) { return factor(m.dim(0), m); }),
      [](M m) {
        M l = factor(m.dim(0), m);
        return std::tuple(l, l);
      },
      [](M l, M bar) { return adjoint(l.dim(0), l, bar); })(a);
}

/// The covariance of points at x, by the logarithms of the curve's height and length and of the noise, for
/// which any number will do.
M covariance(std::array<D, 3> p, A x) {
  I n = x.size();
  D height = exp(2.0 * p[0]), width = 2.0 * exp(2.0 * p[1]), noise = exp(2.0 * p[2]);
  M k = fill(D(0.0), n, n);
  for (I i = 0; i < n; ++i) {
    for (I j = 0; j < n; ++j) k = k.set(i, j, height * exp(-1.0 * (x[i] - x[j]) * (x[i] - x[j]) / width));
    k = k.set(i, i, height + noise);
  }
  return k;
}
/// The logarithm of the likelihood of points (x, y).
D likelihood(std::array<D, 3> p, A x, A y) {
  I n = x.size();
  M l = lower(covariance(p, x));
  A z = fill(D(0.0), n);  // l z = y
  D sum = 0.0;
  for (I i = 0; i < n; ++i) {
    D rest = y[i];
    for (I j = 0; j < i; ++j) rest -= l(i, j) * z[j];
    z = z.set(i, rest / l(i, i));
    sum -= 0.5 * z[i] * z[i] + log(l(i, i));
  }
  return sum - 0.5 * std::log(2 * 3.14159265358979323846) * cast<double>(n);
}

D by_library(std::array<D, 3> p, A x, A y) {
  M l = linalg::cholesky(covariance(p, x));
  A z = linalg::solve_triangular(l, y);
  D sum = -0.5 * dot(z, z);
  for (I i = 0; i < x.size(); ++i) sum -= log(l(i, i));
  return sum - 0.5 * std::log(2 * 3.14159265358979323846) * cast<double>(x.size());
}

LANTERN_FUNCTION(objective, likelihood)
LANTERN_FUNCTION(gradient, value_and_grad<0>(likelihood))
LANTERN_FUNCTION(library_gradient, value_and_grad<0>(by_library))

constexpr int usual_epochs = 2000;

int run(int epochs, std::uint64_t seed, const std::filesystem::path& picture) {
  constexpr double noise = 0.1;
  Random random(seed);
  std::vector<double> x(60), y(60);
  for (int i = 0; i < 60; ++i) {
    x[i] = 5 * random();
    y[i] = std::sin(x[i]) + 0.5 * std::cos(2 * x[i]) + noise * std::sqrt(3.0) * random();
  }
  std::array<double, 3> p{}, next;
  fmt::print("rules beside differences: {:.0e}\n",
             check_derivative(likelihood)(p, std::span(x).first(9), std::span(y).first(9)));

  // Gradient ascent; the rate grows as long as that is uphill.
  auto [value, slope] = gradient(p, x, y);
  const double first = value;
  int steps = 0;
  Chart::Points curve;
  Progress progress("ascent", static_cast<std::uint64_t>(epochs));
  for (double rate = 1e-3;
       rate > 1e-9 && std::hypot(slope[0], slope[1], slope[2]) > 1e-4 && steps < epochs; ++steps) {
    curve.emplace_back(steps, value);
    progress.step(fmt::format("log likelihood {:.2f}", value));
    for (int i = 0; i < 3; ++i) next[i] = p[i] + rate * slope[i];
    const auto [next_value, next_slope] = gradient(next, x, y);
    const bool uphill = next_value > value;
    rate *= uphill ? 1.3 : 0.5;
    if (uphill) p = next, value = next_value, slope = next_slope;
  }
  progress.clear();
  if (!picture.empty()) {
    Chart chart;
    chart.line(curve, "#1f77b4");
    chart.write(picture, "log likelihood", "step");
  }
  fmt::print("log likelihood from {:.2f} to {:.2f} in {} steps\n", first, value, steps);
  fmt::print("height {:.3f}, length {:.3f}, noise {:.3f}\n", std::exp(p[0]), std::exp(p[1]), std::exp(p[2]));
  const double unit = seconds([&] { objective(p, x, y); });
  fmt::print("gradient / objective: {:.1f}, by LAPACK {:.1f}\n", seconds([&] { gradient(p, x, y); }) / unit,
             seconds([&] { library_gradient(p, x, y); }) / unit);
  const auto [there, there_slope] = library_gradient({0.1, 0.2, -0.3}, x, y);
  const auto [here, here_slope] = gradient({0.1, 0.2, -0.3}, x, y);
  double apart = std::abs(there - here);
  for (int i = 0; i < 3; ++i) apart = std::max(apart, std::abs(there_slope[i] - here_slope[i]));
  if (apart > 1e-9) {
    fmt::print("expected the same by the library, got {:.1e} more or less\n", apart);
    return 1;
  }
  if (epochs < usual_epochs) return 0;
  if (std::hypot(slope[0], slope[1], slope[2]) < 1e-3 && std::abs(std::exp(p[2]) - noise) < 0.02) return 0;
  fmt::print("expected a maximum, with a noise of about {}\n", noise);
  return 1;
}

int main(int argc, char** argv) {
  int epochs = usual_epochs;
  std::uint64_t seed = 1;
  std::filesystem::path curve;
  CLI::App app("Learns height, length and noise of a curve from its points.");
  app.option_defaults()->always_capture_default();
  app.add_option("--epochs", epochs, "steps of gradient ascent, at most")->check(CLI::Range(0, 1'000'000));
  app.add_option("--seed", seed, "of the random numbers");
  app.add_option("--curve", curve, "draw the likelihood into an .svg file")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(epochs, seed, curve);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
