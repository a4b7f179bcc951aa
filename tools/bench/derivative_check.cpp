// Comparison of derivatives with known values and with differences.
#include "derivative_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "reference/ba.hpp"
#include "reference/gmm.hpp"
#include "reference/hand.hpp"
#include "reference/lstm.hpp"

namespace lantern::bench {
namespace {

/// The next part of the variables goes into `to`.
void take(std::span<const double>& variables, std::vector<double>& to) {
  std::copy_n(variables.begin(), to.size(), to.begin());
  variables = variables.subspan(to.size());
}

std::vector<double> joined(std::initializer_list<std::span<const double>> parts) {
  std::vector<double> all;
  for (const auto part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Differentiable gradient_of(std::vector<double> variables,
                           std::function<void(std::span<const double>, std::span<double>)> evaluate) {
  const std::size_t entries = variables.size();
  return {std::move(variables), 1, std::move(evaluate), entries, [](std::size_t entry) {
            return Differentiable::Entry{0, entry};
          }};
}

/// The derivatives of all outputs by one variable, by central differences of fourth order (Abramowitz and
/// Stegun, "Handbook of Mathematical Functions", 25.3.21 without its remainder).
std::vector<double> column(const Differentiable& f, std::size_t variable) {
  std::vector<double> x = f.variables, y(f.outputs), sum(f.outputs, 0.0);
  const double h = 1e-4 * std::max(1.0, std::abs(x[variable]));
  const std::array<std::array<double, 2>, 4> steps_and_weights{{{-2, 1}, {-1, -8}, {1, 8}, {2, -1}}};
  for (const auto& [steps, weight] : steps_and_weights) {
    x[variable] = f.variables[variable] + steps * h;
    f.evaluate(x, y);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight / (12 * h) * y[i];
  }
  return sum;
}

bool near(double value, double expected, double allowed) { return std::abs(value - expected) <= allowed; }

}  // namespace

Summary summary(std::span<const double> values) {
  if (values.empty()) return {};
  Summary s{values.size(), 0, 0, values.front(), values.back()};
  double squares = 0;
  for (const double v : values) s.sum += v, squares += v * v;
  s.norm = std::sqrt(squares);
  return s;
}

Differentiable differentiable(std::shared_ptr<const GmmInput> in) {
  auto variables = joined({in->alphas, in->means, in->factors});
  return gradient_of(std::move(variables),
                     [work = *in](std::span<const double> x, std::span<double> y) mutable {
                       take(x, work.alphas);
                       take(x, work.means);
                       take(x, work.factors);
                       y[0] = reference::gmm(work);
                     });
}

Differentiable differentiable(std::shared_ptr<const LstmInput> in) {
  auto variables = joined({in->main, in->extra});
  return gradient_of(std::move(variables),
                     [work = *in](std::span<const double> x, std::span<double> y) mutable {
                       take(x, work.main);
                       take(x, work.extra);
                       y[0] = reference::lstm(work);
                     });
}

Differentiable differentiable(std::shared_ptr<const BaInput> in) {
  Differentiable f;
  f.variables = joined({in->camera, in->point, in->weight});
  const std::size_t observations = in->joins.size();
  f.outputs = 3 * observations;
  f.entries = 31 * observations;
  f.evaluate = [work = *in, observations](std::span<const double> x, std::span<double> y) mutable {
    take(x, work.camera);
    take(x, work.point);
    take(x, work.weight);
    reference::ba(work, y.first(2 * observations), y.subspan(2 * observations));
  };
  f.entry = [in, observations](std::size_t entry) -> Differentiable::Entry {
    const std::size_t points_at = in->camera.size(), weights_at = points_at + in->point.size();
    if (entry >= 30 * observations) {
      const std::size_t i = entry - 30 * observations;
      return {2 * observations + i, weights_at + i};
    }
    const std::size_t i = entry / 30, output = 2 * i + entry % 30 / 15, column = entry % 15;
    const auto camera = static_cast<std::size_t>(in->joins[i][0]),
               point = static_cast<std::size_t>(in->joins[i][1]);
    if (column < 11) return {output, 11 * camera + column};
    if (column < 14) return {output, points_at + 3 * point + column - 11};
    return {output, weights_at + i};
  };
  return f;
}

Differentiable differentiable(std::shared_ptr<const HandInput> in) {
  Differentiable f;
  f.variables = joined({in->u, in->theta});
  f.outputs = 3 * in->measured.size();
  const std::size_t rows = f.outputs, own = in->complicated() ? 2 : 0, theta_at = in->u.size();
  f.entries = rows * (own + in->theta.size());
  f.evaluate = [hand = std::make_shared<const reference::Hand>(*in), theta_at](std::span<const double> x,
                                                                               std::span<double> y) {
    (*hand)(x.subspan(theta_at), x.first(theta_at), y);
  };
  f.entry = [rows, own, theta_at](std::size_t entry) -> Differentiable::Entry {
    const std::size_t row = entry % rows, column = entry / rows;
    if (column < own) return {row, 2 * (row / 3) + column};
    return {row, theta_at + column - own};
  };
  return f;
}

std::string check_objective(std::span<const double> outputs, const Differentiable& f, double tolerance) {
  if (outputs.size() != f.outputs)
    return fmt::format("expected {} outputs, got {}", f.outputs, outputs.size());
  std::vector<double> expected(f.outputs);
  f.evaluate(f.variables, expected);
  const double typical = summary(expected).norm / std::sqrt(static_cast<double>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!near(outputs[i], expected[i], tolerance * std::max(std::abs(expected[i]), typical)))
      return fmt::format("expected output {} to be {:.15g}, got {:.15g}", i, expected[i], outputs[i]);
  return {};
}

double difference(const Differentiable& f, std::size_t entry) {
  const auto [output, variable] = f.entry(entry);
  return column(f, variable)[output];
}

std::vector<double> differences(const Differentiable& f) {
  std::vector<std::vector<std::size_t>> entries_of(f.variables.size());
  for (std::size_t i = 0; i < f.entries; ++i) entries_of[f.entry(i).variable].push_back(i);
  std::vector<double> all(f.entries);
  for (std::size_t variable = 0; variable < entries_of.size(); ++variable) {
    if (entries_of[variable].empty()) continue;
    const std::vector<double> derivatives = column(f, variable);
    for (const std::size_t i : entries_of[variable]) all[i] = derivatives[f.entry(i).output];
  }
  return all;
}

std::string compare(const Summary& values, const Summary& expected, double tolerance) {
  if (values.count != expected.count)
    return fmt::format("expected {} entries, got {}", expected.count, values.count);
  // The sum of n numbers of norm s is at most s sqrt(n): rounding errors are relative to that.
  const double root = std::sqrt(static_cast<double>(std::max<std::size_t>(expected.count, 1)));
  const double typical = expected.norm / root;
  const auto one = [&](const char* what, double value, double wanted, double scale) {
    return near(value, wanted, tolerance * std::max(std::abs(wanted), scale))
               ? std::string()
               : fmt::format("expected {} {:.12g}, got {:.12g}", what, wanted, value);
  };
  for (const std::string& wrong : {one("the sum", values.sum, expected.sum, expected.norm * root),
                                   one("the norm", values.norm, expected.norm, 0),
                                   one("the first entry", values.first, expected.first, typical),
                                   one("the last entry", values.last, expected.last, typical)})
    if (!wrong.empty()) return wrong;
  return {};
}

std::string compare_with_differences(std::span<const double> derivative, const Differentiable& f,
                                     std::size_t samples, double tolerance) {
  if (derivative.size() != f.entries)
    return fmt::format("expected {} entries, got {}", f.entries, derivative.size());
  const Summary s = summary(derivative);
  const double typical = s.norm / std::sqrt(static_cast<double>(std::max<std::size_t>(s.count, 1)));
  const std::size_t count = std::min(std::max<std::size_t>(samples, 2), f.entries);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t entry = count == 1 ? 0 : i * (f.entries - 1) / (count - 1);
    const double expected = difference(f, entry);
    if (!near(derivative[entry], expected, tolerance * std::max(std::abs(expected), typical)))
      return fmt::format("expected entry {} to be {:.9g} by differences, got {:.9g}", entry, expected,
                         derivative[entry]);
  }
  return {};
}

std::string check_derivative(std::span<const double> derivative, const std::string& problem,
                             const Differentiable& f, std::size_t samples) {
  if (const auto known = known_values(problem)) {
    const std::string wrong = compare(summary(derivative), known->derivative);
    if (!wrong.empty()) return wrong;
  }
  return compare_with_differences(derivative, f, samples);
}

}  // namespace lantern::bench
