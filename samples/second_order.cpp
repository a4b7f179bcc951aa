// Second-order methods on a small network: what the Hessian, or J^T J, buys over the gradient.
//
//   second_order
//   second_order --curve FILE    draws the loss over the steps of Gauss-Newton into an .svg file
//
// A network of one hidden layer learns a curve from 60 points. The same sum of squares is made small by
// gradient descent, by Newton's method on Hessian-vector products (solvers::newton_cg), by Gauss-Newton steps
// whose equations are solved by conjugate gradients on products J^T (J v), one pass of jvp and one of vjp
// each (Martens 2010, "Deep learning via Hessian-free optimization"), and by solvers::gauss_newton, which
// forms J.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cmath>
#include <lantern/nn.hpp>
#include <lantern/solvers.hpp>
#include <numeric>
#include <vector>

#include "lantern/runtime/progress.hpp"
#include "support.hpp"
#include "training.hpp"

using namespace lantern;

using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;
using Vector = std::vector<double>;

constexpr int64_t hidden = 8, parameters = 3 * hidden + 1, points = 60;
constexpr double decay = 1e-6;

/// v^T tanh(w x + b) + c at each x; the parameters are w, b, v and c, one behind the other.
A network(A p, A x) {
  const A w = p.slice(0, hidden), b = p.slice(hidden, 2 * hidden), v = p.slice(2 * hidden, 3 * hidden);
  return as_array(matmul(tanh(outer(x, w) + as_tensor(b)), as_tensor(v))) + p[3 * hidden];
}
/// What the network is off at each point, and a little of each parameter: the Hessian has full rank then.
A residuals(A p, A x, A y) {
  return concat((network(p, x) - y) / sqrt(cast<double>(x.size())), std::sqrt(decay) * p);
}
D loss(A p, A x, A y) {
  const A r = residuals(p, x, y);
  return 0.5 * dot(r, r);
}

/// The Hessian times v.
A hessian_product(A p, A v, A x, A y) {
  return hvp([&](A q) { return loss(q, x, y); })(p, v);
}
/// J^T J v, J the derivative of the residuals.
A gauss_newton_product(A p, A v, A x, A y) {
  const auto r = [&](A q) { return residuals(q, x, y); };
  return std::get<1>(vjp(r)(p, std::get<1>(jvp(r)(p, v))));
}

/// The step d with (J^T J + damping) d = -gradient to one part in a thousand.
A damped_step(A p, A gradient, D damping, A x, A y) {
  struct State {
    A step, rest, direction;
    D square;
    I products;
  };
  const D enough = 1e-6 * dot(gradient, gradient);
  const State end = WHILE(
      State{zeros_like(p), -gradient, -gradient, dot(gradient, gradient), 0},
      [&](State s) { return (s.square > enough) & (s.products < 10 * parameters); },
      [&](State s) {
        const A image = gauss_newton_product(p, s.direction, x, y) + damping * s.direction;
        const D share = s.square / dot(s.direction, image);
        const A rest = s.rest - share * image;
        const D square = dot(rest, rest);
        return State{s.step + share * s.direction, rest, rest + square / s.square * s.direction, square,
                     s.products + 1};
      });
  return end.step;
}

LANTERN_FUNCTION(gradient, value_and_grad<0>(loss))
LANTERN_FUNCTION(by_hessian, hessian_product)
LANTERN_FUNCTION(by_residuals, gauss_newton_product)
LANTERN_FUNCTION(dense_jacobian, jacobian<0>(residuals))
LANTERN_FUNCTION(free_step, damped_step)

LANTERN_FUNCTION(newton_cg,
                 [](A p, A x, A y) { return solvers::newton_cg(loss, {.tolerance = 1e-9}, p, x, y); })
LANTERN_FUNCTION(gauss_newton, [](A p, A x, A y) {
  return solvers::gauss_newton(residuals, {.tolerance = 1e-7, .iterations = 1000}, p, x, y);
})

namespace {

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
double norm(const Vector& v) { return std::sqrt(dot(v, v)); }
/// a + factor b.
Vector plus(Vector a, double factor, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
  return a;
}

/// Gauss-Newton without matrices, damped by what the steps before have gained (Madsen, Nielsen and Tingleff
/// 2004, "Methods for non-linear least squares problems", algorithm 3.16).
std::pair<Vector, int64_t> hessian_free(Vector p, const Vector& x, const Vector& y, LossCurve& curve) {
  int64_t steps = 0;
  auto [now, slope] = gradient(p, x, y);
  double damping = 1e-3, factor = 2;
  for (; norm(slope) > 1e-9 && steps < 1000; ++steps) {
    curve.add(static_cast<double>(steps), now);
    const Vector step = free_step(p, slope, damping, x, y), next = plus(p, 1, step);
    const auto [there, next_slope] = gradient(next, x, y);
    const double expected = 0.5 * (damping * dot(step, step) - dot(step, slope)),
                 ratio = (now - there) / expected;
    if (ratio > 0 || (std::abs(now - there) < 1e-13 * now && norm(next_slope) < norm(slope))) {
      damping *= std::max(1.0 / 3, 1 - std::pow(2 * ratio - 1, 3)), factor = 2;
      p = next, now = there, slope = next_slope;
    } else {
      damping *= factor, factor *= 2;
    }
  }
  return {p, steps};
}

/// Products with vectors beside differences of gradients, and beside the matrix.
double worst_difference(const Vector& p, const Vector& x, const Vector& y, Random& random) {
  Vector v(parameters);
  for (double& e : v) e = random();
  constexpr double h = 1e-5;
  const Vector up = std::get<1>(gradient(plus(p, h, v), x, y)),
               down = std::get<1>(gradient(plus(p, -h, v), x, y));
  const Vector exact = by_hessian(p, v, x, y), product = by_residuals(p, v, x, y);
  const TensorValue<double> j = dense_jacobian(p, x, y);
  const auto rows = static_cast<std::size_t>(j.shape[0]), columns = v.size();
  Vector by_matrix(columns);
  for (std::size_t i = 0; i < rows; ++i) {
    double jv = 0;
    for (std::size_t k = 0; k < columns; ++k) jv += j[i * columns + k] * v[k];
    for (std::size_t k = 0; k < columns; ++k) by_matrix[k] += j[i * columns + k] * jv;
  }
  return std::max(norm(plus(exact, -0.5 / h, plus(up, -1, down))) / norm(exact),
                  norm(plus(product, -1, by_matrix)) / norm(product));
}

constexpr int usual_epochs = 5000;

int run(const Training& options) {
  Random random(options.seed);
  Vector x(points), y(points), start(parameters);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 2 * random();
    y[i] = std::sin(5 * x[i]) * std::exp(-0.3 * x[i] * x[i]) + 0.02 * random();
  }
  for (double& e : start) e = random();
  const double difference = worst_difference(start, x, y, random);
  fmt::print("products beside differences and matrices: off by {:.0e}\n\n", difference);

  using Clock = std::chrono::steady_clock;
  const auto report = [&](const char* name, const auto& search) {
    search();  // compiles what it needs
    const auto begin = Clock::now();
    const auto [p, steps] = search();
    const double time = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    const auto [f, slope] = gradient(p, x, y);
    fmt::print("{:36}{:7} steps, loss {:.7f}, gradient {:.0e}, {:6.1f} ms\n", name, steps, f, norm(slope),
               time);
    return std::pair(f, norm(slope));
  };
  const auto descent = report("gradient descent", [&] {
    Vector p = start;
    Progress progress("gradient descent", static_cast<std::uint64_t>(options.epochs));
    for (int i = 0; i < options.epochs; ++i, progress.step())
      p = plus(p, -0.2, std::get<1>(gradient(p, x, y)));
    return std::pair(p, options.epochs);
  });
  const auto found = [](const auto& m) { return std::pair(m.x, m.iterations); };
  LossCurve curve;
  Vector best;
  const std::array searches = {
      report("Newton, conjugate gradients", [&] { return found(newton_cg(start, x, y)); }),
      report("Gauss-Newton, conjugate gradients",
             [&] {
               curve = {};
               const auto [p, steps] = hessian_free(start, x, y, curve);
               best = p;
               return std::pair(p, steps);
             }),
      report("Gauss-Newton, dense", [&] { return found(gauss_newton(start, x, y)); })};

  TensorValue<double> weights({parameters});
  weights.data = best;
  finish(options, {{"weights", weights}}, curve, "loss of Gauss-Newton");
  if (options.epochs < usual_epochs) return 0;

  for (const auto& [f, slope] : searches)
    if (!(slope < 1e-6 && f < 0.5 * descent.first)) {
      fmt::print("expected each method to find a minimum, below half of what gradient descent finds\n");
      return 1;
    }
  if (difference < 1e-6) return 0;
  fmt::print("expected products to be right to 1e-6\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Training options{.epochs = usual_epochs};
  CLI::App app("Trains a small network by first and second derivatives.");
  app.option_defaults()->always_capture_default();
  add_run_options(app, options, "steps of gradient descent, the yardstick");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
