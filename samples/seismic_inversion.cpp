// Seismic inversion: what lies below the ground, from the echoes of a knock on it.
//
// A wave runs through layers of different speeds; one sensor hears what comes back, another what gets to the
// bottom. The gradient of the misfit by the speed of every cell follows the wave backwards, and asks for its
// state at each step. {.checkpoints = 20} keeps twenty of the states and computes the others again from
// these.
#include <fmt/core.h>

#include <cmath>
#include <lantern/lantern.hpp>
#include <numeric>
#include <thread>
#include <vector>

#include "support.hpp"

using namespace lantern;

using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;

constexpr int64_t cells = 150, steps = 800, top = 5, bottom = cells - 5;

/// Displacement after the next step of time; speeds are in cells per step. Waves leave through both ends.
A next(A now, A before, A speed, I step) {
  A after = now;
  for (I i = 1; i < cells - 1; ++i) {
    D bend = now[i - 1] - 2.0 * now[i] + now[i + 1];
    after[i] = 2.0 * now[i] - before[i] + speed[i] * speed[i] * bend;
  }
  D t = (cast<double>(step) - 50.0) / 12.0;
  after[2] = after[2] + t * exp(-1.0 * t * t);  // the knock
  const auto leave = [&](int64_t end, int64_t beside) {
    D c = speed[end];
    after[end] = now[beside] + (c - 1.0) / (c + 1.0) * (after[beside] - now[end]);
  };
  leave(0, 1);
  leave(cells - 1, cells - 2);
  return after;
}

/// What the sensors hear: after each step, at the top and at the bottom.
A heard(A speed) {
  A now = fill(D(0.0), cells), before = now, trace = fill(D(0.0), 2 * steps);
  for (I k = 0; k < steps; ++k) {
    A after = next(now, before, speed, k);
    before = now, now = after;
    trace[2 * k] = now[top], trace[2 * k + 1] = now[bottom];
  }
  return trace;
}

/// How far that is from what they did hear.
D misfit(A speed, A trace, LoopOptions options) {
  A zero = fill(D(0.0), cells);
  const auto step = [&](I k, std::tuple<A, A, D> s) {
    const auto& [now, before, sum] = s;
    A after = next(now, before, speed, k);
    D a = after[top] - trace[2 * k], b = after[bottom] - trace[2 * k + 1];
    return std::tuple(after, now, sum + a * a + b * b);
  };
  return std::get<2>(FOR(0, steps, std::tuple(zero, zero, D(0.0)), step, options));
}
D freely(A speed, A trace) { return misfit(speed, trace, {}); }
D bounded(A speed, A trace) { return misfit(speed, trace, {.checkpoints = 20}); }

LANTERN_FUNCTION(listen, heard)
LANTERN_FUNCTION(objective, freely)
LANTERN_FUNCTION(gradient, value_and_grad<0>(freely))
LANTERN_FUNCTION(bounded_gradient, value_and_grad<0>(bounded))

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

int main() {
  Vector truth(cells), speed(cells, 0.5);
  for (int i = 0; i < cells; ++i)
    truth[i] =
        0.5 + 0.06 * std::exp(-std::pow((i - 50) / 10.0, 2)) - 0.05 * std::exp(-std::pow((i - 95) / 12.0, 2));
  const Vector trace = listen(truth);

  // The most memory that a thread's calls needed.
  const auto bytes = [&](const auto& f) {
    int64_t most = 0;
    std::thread([&] { f(speed, trace), most = workspace_bytes(); }).join();
    return most;
  };
  const int64_t all = bytes(gradient), some = bytes(bounded_gradient);
  fmt::print("memory: {} kB, with checkpoints {} kB\n", all / 1000, some / 1000);

  // Quasi-Newton (BFGS): `inverse` approaches the inverse Hessian by what steps do to the gradient.
  auto [value, slope] = bounded_gradient(speed, trace);
  const double first = value;
  std::vector<Vector> inverse(cells, Vector(cells));
  for (int i = 0; i < cells; ++i) inverse[i][i] = 0.01 / std::sqrt(dot(slope, slope));
  int evaluations = 1;
  while (value > 1e-5 * first && evaluations < 500) {
    Vector step, bent, turn(cells);
    for (const Vector& row : inverse) step.push_back(-dot(row, slope));
    Vector tried(cells), tried_slope;
    double tried_value = 0;
    for (double share = 1; share > 1e-6; share *= 0.5, ++evaluations) {
      for (int i = 0; i < cells; ++i) tried[i] = speed[i] + share * step[i];
      std::tie(tried_value, tried_slope) = bounded_gradient(tried, trace);
      if (tried_value < value) break;
    }
    for (int i = 0; i < cells; ++i) step[i] = tried[i] - speed[i], turn[i] = tried_slope[i] - slope[i];
    for (const Vector& row : inverse) bent.push_back(dot(row, turn));
    const double curve = dot(step, turn), scale = (1 + dot(turn, bent) / curve) / curve;
    if (curve > 0)
      for (int i = 0; i < cells; ++i)
        for (int j = 0; j < cells; ++j)
          inverse[i][j] += scale * step[i] * step[j] - (bent[i] * step[j] + step[i] * bent[j]) / curve;
    speed = tried, value = tried_value, slope = tried_slope, ++evaluations;
  }
  double worst = 0;
  for (int i = 10; i < cells - 10; ++i) worst = std::max(worst, std::abs(speed[i] - truth[i]));
  fmt::print("{} gradients: misfit {:.1e} of the first, speeds off by {:.4f}\n", evaluations, value / first,
             worst);
  const double unit = seconds([&] { objective(speed, trace); });
  fmt::print("gradient / objective: {:.1f}, with checkpoints {:.1f}\n",
             seconds([&] { gradient(speed, trace); }) / unit,
             seconds([&] { bounded_gradient(speed, trace); }) / unit);
  if (value < 1e-4 * first && worst < 0.01 && 3 * some < all) return 0;
  fmt::print("expected a misfit of 1e-4, and a third of the memory\n");
  return 1;
}
