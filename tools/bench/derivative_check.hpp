// Whether a gradient or Jacobian is right: against the suite's own values, and against differences of the
// reference objective.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adbench_input.hpp"

namespace lantern::bench {

/// What is known of a vector of numbers.
struct Summary {
  std::size_t count = 0;
  double sum = 0, norm = 0, first = 0, last = 0;
};
Summary summary(std::span<const double> values);

/// The suite's own results for a problem, 12 digits.
struct KnownValues {
  std::vector<Summary> objective;  ///< of each output: a single number, or errors (and weight errors)
  Summary derivative;
};
/// Of a problem by name (problem.hpp); nothing for problems whose values are not known.
std::optional<KnownValues> known_values(const std::string& problem);

/// A function of a vector, and which of its partial derivatives make up the derivative as ADBench lays it
/// out.
struct Differentiable {
  struct Entry {
    std::size_t output, variable;
  };
  std::vector<double> variables;  ///< where the derivative is taken
  std::size_t outputs = 0;
  std::function<void(std::span<const double> variables, std::span<double> outputs)> evaluate;
  std::size_t entries = 0;                        ///< of the derivative
  std::function<Entry(std::size_t entry)> entry;  ///< what an entry is the derivative of, and by what
};

/// GMM: alphas, means, factors. The gradient is in that order.
Differentiable differentiable(std::shared_ptr<const GmmInput> in);
/// BA: cameras, points, weights; outputs: reprojection errors, weight errors. For each observation 15 entries
/// (camera, point, weight) of the first error, 15 of the second; then one for each weight error.
Differentiable differentiable(std::shared_ptr<const BaInput> in);
/// LSTM: main parameters, extra parameters.
Differentiable differentiable(std::shared_ptr<const LstmInput> in);
/// HAND: u, theta. The Jacobian column by column: in the complicated form two columns for each point's own u,
/// then 26 for theta.
Differentiable differentiable(std::shared_ptr<const HandInput> in);

/// Compares outputs with the reference's, relative to the output or, where that is larger, to their root mean
/// square. Empty: they agree; else what does not.
std::string check_objective(std::span<const double> outputs, const Differentiable& f,
                            double tolerance = 1e-11);

/// The entry by central differences of fourth order.
double difference(const Differentiable& f, std::size_t entry);

/// All entries by such differences: four evaluations for each variable.
std::vector<double> differences(const Differentiable& f);

/// Compares count, sum, norm, first and last entry. Empty: they agree; else what does not. A sum is compared
/// relative to what the norm allows it to be, as it may cancel.
std::string compare(const Summary& values, const Summary& expected, double tolerance = 1e-9);

/// Compares about `samples` entries, evenly spread and with the first and the last, with differences of the
/// reference. Tolerance: relative to the entry or, where that is larger, to the root mean square of all
/// entries.
std::string compare_with_differences(std::span<const double> derivative, const Differentiable& f,
                                     std::size_t samples = 50, double tolerance = 1e-5);

/// Both comparisons; the first only where the values are known.
std::string check_derivative(std::span<const double> derivative, const std::string& problem,
                             const Differentiable& f, std::size_t samples = 50);

}  // namespace lantern::bench
