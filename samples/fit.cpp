// A curve through measurements: the half-life of a sample, with its error.
//
//   fit            prints what was found
//   fit FILE       also draws it into an .svg file
//
// docs/tutorials/fit.md tells this program step by step.
#include <fmt/core.h>

#include <cmath>
#include <lantern/solvers.hpp>
#include <string>
#include <vector>

#include "chart.hpp"
#include "support.hpp"

using namespace lantern;

// [model]
using D = Rep<double>;
using A = Rep<Array<double>>;

/// Counts per second at the times t, of a sample that decays before a constant background.
A counts(A p, A t) { return p[0] * exp(-p[1] * t) + p[2]; }
/// What the model is off at each time.
A residuals(A p, A t, A seen) { return counts(p, t) - seen; }
// [/model]

// [fit]
auto best(A start, A t, A seen) { return solvers::levenberg_marquardt(residuals, start, t, seen); }
LANTERN_FUNCTION(best_parameters, best)
LANTERN_FUNCTION(expected_counts, counts)
// [/fit]

// [question]
/// The half-life that a fit finds.
D half_life(A start, A t, A seen) { return std::log(2.0) / best(start, t, seen).x[1]; }
LANTERN_FUNCTION(influence, grad<2>(half_life))
// [/question]

int main(int argc, char** argv) {
  // [data]
  const std::vector<double> truth{90.0, 0.35, 12.0};
  std::vector<double> t, seen;
  for (int i = 0; i < 25; ++i) t.push_back(0.5 * i);
  seen = expected_counts(truth, t);
  Random random;
  for (double& count : seen) count += 2.0 * std::sqrt(3.0) * random();  // a deviation of 2
  // [/data]

  // [call]
  const std::vector<double> start{50.0, 1.0, 0.0};
  const auto fit = best_parameters(start, t, seen);
  const char* const names[] = {"height", "rate", "background"};
  for (std::size_t i = 0; i < 3; ++i)
    fmt::print("{:<10} {:7.3f} +- {:.3f}   (made with {})\n", names[i], fit.x[i], fit.standard_errors[i],
               truth[i]);
  fmt::print("converged: {}, deviation of a count: {:.2f}\n", fit.converged,
             std::sqrt(fit.residual_variance));
  // [/call]

  // [influence]
  const std::vector<double> by_count = influence(start, t, seen);
  fmt::print("a count more at t = 0 changes the half-life by {:.4f}, at t = 5 by {:.4f}\n", by_count[0],
             by_count[10]);
  // [/influence]

  // Beside a difference: the whole fit again, with another measurement.
  seen[10] += 1e-3;
  const double more = std::log(2.0) / best_parameters(start, t, seen).x[1];
  seen[10] -= 2e-3;
  const double less = std::log(2.0) / best_parameters(start, t, seen).x[1];
  seen[10] += 1e-3;
  const bool right = std::abs((more - less) / 2e-3 - by_count[10]) < 1e-6;

  if (argc > 1) {
    Chart chart;
    Chart::Points measured, curve;
    for (std::size_t i = 0; i < t.size(); ++i) measured.emplace_back(t[i], seen[i]);
    std::vector<double> fine;
    for (int i = 0; i <= 120; ++i) fine.push_back(0.1 * i);
    const std::vector<double> fitted = expected_counts(fit.x, fine);
    for (std::size_t i = 0; i < fine.size(); ++i) curve.emplace_back(fine[i], fitted[i]);
    chart.dots(measured, "#d62728", "measured");
    chart.line(curve, "#1f77b4", "fitted");
    chart.write(argv[1], "counts per second", "time");
  }
  if (right && fit.converged && std::abs(fit.x[1] - truth[1]) < 4 * fit.standard_errors[1]) return 0;
  fmt::print("expected the rate within four standard errors, and its derivative as by differences\n");
  return 1;
}
