// The rates of a differential equation, from points of its solution: hares and lynxes (Lotka 1925, Volterra
// 1926).
//
//   predator_prey         prints the rates
//   predator_prey FILE    also draws data and solution into an .svg file
//
// docs/tutorials/ode.md tells this program step by step.
#include <fmt/core.h>

#include <cmath>
#include <lantern/solvers.hpp>
#include <string>
#include <vector>

#include "chart.hpp"
#include "support.hpp"

using namespace lantern;

// [equation]
using D = Rep<double>;
using A = Rep<Array<double>>;

/// dy/dt at time t. Hares: births and losses by meetings; lynxes: deaths and gains by meetings.
A rates(D, A y, A p) {
  const D hares = y[0], lynxes = y[1], meetings = hares * lynxes;
  return fill(D(0.0), 2).set(0, p[0] * hares - p[1] * meetings).set(1, p[3] * meetings - p[2] * lynxes);
}
// [/equation]

// [solution]
/// Hares and lynxes at so many times, one behind the other: at the start, and each half a year later.
A solution(A p, Rep<int64_t> count) {
  const A start = fill(D(1.0), 2), none = fill(D(0.0), 2 * count).set(0, start[0]).set(1, start[1]);
  return std::get<1>(FOR(1, count, std::tuple(start, none), [&](auto k, A y, A rows) {
    const A next = solvers::rk4(rates, y, 0.0, 0.5, 10, p);
    return std::tuple(next, rows.set(2 * k, next[0]).set(2 * k + 1, next[1]));
  }));
}
LANTERN_FUNCTION(animals, solution)
// [/solution]

// [fit]
A off(A p, A seen) { return solution(p, seen.size() / 2) - seen; }
auto best(A start, A seen) { return solvers::levenberg_marquardt(off, start, seen); }
LANTERN_FUNCTION(best_rates, best)
// [/fit]

// [gradient]
D misfit(A p, A seen) {
  const A r = off(p, seen);
  return 0.5 * dot(r, r);
}
LANTERN_FUNCTION(misfit_slope, value_and_grad<0>(misfit))
// [/gradient]

int main(int argc, char** argv) {
  // [data]
  const std::vector<double> truth{1.1, 0.4, 0.8, 0.3};
  constexpr int count = 41;
  std::vector<double> seen = animals(truth, count);
  Random random;
  for (double& v : seen) v += 0.2 * random();
  // [/data]

  // [call]
  const std::vector<double> start{0.9, 0.5, 1.0, 0.4};
  const auto fit = best_rates(start, seen);
  const char* const names[] = {"births of hares", "losses of hares", "deaths of lynxes", "gains of lynxes"};
  for (std::size_t i = 0; i < 4; ++i)
    fmt::print("{:<17} {:.3f} +- {:.3f}   (made with {})\n", names[i], fit.x[i], fit.standard_errors[i],
               truth[i]);
  // [/call]

  // [check]
  const auto [at_start, slope] = misfit_slope(start, seen);
  fmt::print("slope of the misfit by each rate, at the start: {:.1f} {:.1f} {:.1f} {:.1f}\n", slope[0],
             slope[1], slope[2], slope[3]);
  std::vector<double> moved = start;
  moved[0] += 1e-6;
  const double difference = (std::get<0>(misfit_slope(moved, seen)) - at_start) / 1e-6;
  fmt::print("the first by a difference: {:.1f}\n", difference);
  // [/check]

  if (argc > 1) {
    Chart chart;
    const std::vector<double> found = animals(fit.x, count);
    for (std::size_t k = 0; k < 2; ++k) {
      const char* const colour = k == 0 ? "#1f77b4" : "#d62728";
      Chart::Points dots, line;
      for (std::size_t i = 0; i < count; ++i) {
        dots.emplace_back(0.5 * double(i), seen[2 * i + k]);
        line.emplace_back(0.5 * double(i), found[2 * i + k]);
      }
      chart.dots(dots, colour, k == 0 ? "hares" : "lynxes");
      chart.line(line, colour);
    }
    chart.write(argv[1], "measured and fitted", "years");
  }
  bool right = fit.converged && std::abs(difference - slope[0]) < 1e-3 * std::abs(slope[0]);
  for (std::size_t i = 0; i < 4; ++i) right &= std::abs(fit.x[i] - truth[i]) < 4 * fit.standard_errors[i];
  if (right) return 0;
  fmt::print("expected each rate within four standard errors, and the slope of a difference\n");
  return 1;
}
