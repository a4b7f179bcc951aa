// Molecular dynamics: a liquid of Lennard-Jones particles, whose forces are the gradient of its energy.
//
// The energy is written with C++'s own loops and branches: a pair that is too far apart adds nothing. The
// iterations of the outer loop add to one sum, so the derivative needs no tape. forces.into writes them where the
// integrator wants them and asks for no memory, however many steps there are.
#include <fmt/core.h>

#include <cmath>
#include <lantern/lantern.hpp>
#include <vector>

#include "support.hpp"

using namespace lantern;

using D = Rep<double>;
using I = Rep<int64_t>;
using M = Rep<Tensor<double, dyn, 3>>;

/// The way from one coordinate to another in a box that repeats itself.
D nearest(D way, D box) { return way - box * round(way / box); }

/// The energy of all pairs nearer than 2.5, where energy and force end smoothly.
D energy(M x, D box) {
  constexpr double cutoff = 2.5;
  D sum = 0.0;
  for (I i = 0; i < x.dim(0); ++i)
    for (I j = 0; j < i; ++j) {
      D a = nearest(x(i, 0) - x(j, 0), box), b = nearest(x(i, 1) - x(j, 1), box),
        c = nearest(x(i, 2) - x(j, 2), box);
      D square = a * a + b * b + c * c;
      if (square < cutoff * cutoff) {
        D inverse = 1.0 / (square * square * square), fade = 1.0 - square / (cutoff * cutoff);
        sum += 4.0 * (inverse * inverse - inverse) * fade * fade;
      }
    }
  return sum;
}

LANTERN_FUNCTION(potential, energy)
LANTERN_FUNCTION(slopes, value_and_grad<0>(energy))

int main() {
  constexpr int side = 5, count = side * side * side, steps = 2000;
  constexpr double box = side * 1.1, dt = 0.002;

  // On a grid, with random speeds whose sum is zero.
  Random random;
  TensorValue<double> x({count, 3}), v({count, 3}), slope({count, 3});
  double momentum[3] = {};
  for (int i = 0; i < 3 * count; ++i) {
    const int cell = i % 3 == 0 ? i / 3 / side / side : i % 3 == 1 ? i / 3 / side % side : i / 3 % side;
    x[i] = 1.1 * cell;
    v[i] = 2 * random();
    momentum[i % 3] += v[i] / count;
  }
  for (int i = 0; i < 3 * count; ++i) v[i] -= momentum[i % 3];

  // Velocity Verlet.
  double value = 0, first = 0, worst = 0;
  TensorView<double> slope_view = slope;
  slopes.into(value, slope_view, x, box);
  const auto kinetic = [&] {
    double sum = 0;
    for (const double u : v.data) sum += 0.5 * u * u;
    return sum;
  };
  for (int step = 0; step <= steps; ++step) {
    const double total = kinetic() + value;
    if (step == 0) first = total;
    worst = std::max(worst, std::abs(total - first));
    if (step % 400 == 0)
      fmt::print("time {:.2f}: potential {:9.3f}, kinetic {:8.3f}, total {:9.4f}\n", step * dt, value,
                 kinetic(), total);
    for (int i = 0; i < 3 * count; ++i) {
      v[i] -= 0.5 * dt * slope[i];
      x[i] += dt * v[i];
    }
    slopes.into(value, slope_view, x, box);
    for (int i = 0; i < 3 * count; ++i) v[i] -= 0.5 * dt * slope[i];
  }

  double drift = 0;
  for (int d = 0; d < 3; ++d) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += v[3 * i + d];
    drift = std::max(drift, std::abs(sum));
  }
  const double relative = worst / kinetic();
  fmt::print("{} particles, {} steps: energy off by {:.1e} of the kinetic energy, momentum by {:.0e}\n",
             count, steps, relative, drift);
  const double unit = seconds([&] { potential(x, box); });
  fmt::print("gradient / objective: {:.1f}\n",
             seconds([&] { slopes.into(value, slope_view, x, box); }) / unit);
  if (relative < 1e-3 && drift < 1e-9) return 0;
  fmt::print("expected energy and momentum to be kept\n");
  return 1;
}
