// Ordinary kernels: what their gradients and objectives take, in multiples of the same loops in plain C++.
#include "kernels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <random>
#include <thread>

#include "bench.hpp"
#include "child.hpp"
#include "options.hpp"
#include "report.hpp"

namespace lantern::bench {
namespace {

std::mt19937_64& generator() {
  static std::mt19937_64 numbers(20190801);
  return numbers;
}

std::vector<Kernel> all_kernels(const Options& options) {
  const Sizes of{options.quick ? Sizes::quick : options.large ? Sizes::large : Sizes::usual};
  std::vector<Kernel> all;
  for (auto& some : {linear_kernels(of), stencil_kernels(of), science_kernels(of), learning_kernels(of),
                     native_kernels(of)})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

/// Empty: the value is that of plain C++; else what it is.
std::string check_value(const CompiledKernel& k) {
  const double expected = k.plain(), got = k.objective();
  if (std::abs(got - expected) <= 1e-9 * std::abs(expected)) return "";
  return fmt::format("expected the value {:.12g}, got {:.12g}", expected, got);
}

/// Empty: the gradient agrees with differences of the plain objective along some directions, of one step
/// length or a shorter one, which a choice of the largest or smallest may need; else how it does not.
/// Relative to what a gradient of this length has along a direction, as that may cancel.
std::string check_gradient(const CompiledKernel& k) {
  constexpr double tolerance = 1e-5;
  k.gradient();
  for (int i = 0; i < 2; ++i) {
    std::vector<Values> starts, directions;
    double slope = 0, squares = 0;
    for (std::size_t a = 0; a < k.inputs.size(); ++a) {
      starts.emplace_back(k.inputs[a].begin(), k.inputs[a].end());
      directions.push_back(uniform(static_cast<std::int64_t>(starts[a].size())));
      for (std::size_t e = 0; e < starts[a].size(); ++e) {
        slope += directions[a][e] * k.gradients[a][e];
        squares += k.gradients[a][e] * k.gradients[a][e];
      }
    }
    const auto at = [&](double t) {
      for (std::size_t a = 0; a < starts.size(); ++a)
        for (std::size_t e = 0; e < starts[a].size(); ++e)
          k.inputs[a][e] = starts[a][e] + t * directions[a][e];
      return k.plain();
    };
    double difference = 0;
    const auto agrees = [&](double h) {
      difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      const double scale = std::max(std::abs(difference), std::sqrt(squares / 3));
      return std::abs(slope - difference) <= tolerance * scale;
    };
    const bool right = agrees(1e-4) || agrees(1e-6) || agrees(1e-8);
    at(0);
    if (!right)
      return fmt::format("expected the slope {:.9g} along a direction, got {:.9g}", difference, slope);
  }
  return "";
}

/// Empty: the Hessian times a direction agrees with differences of the gradient; else how it does not.
std::string check_second(const CompiledKernel& k) {
  for (const std::span<double> d : k.directions) std::ranges::copy(uniform(static_cast<std::int64_t>(d.size())), d.begin());
  k.second();
  std::vector<Values> starts;
  for (const std::span<double> x : k.inputs) starts.emplace_back(x.begin(), x.end());
  const auto slopes_at = [&](double t) {
    for (std::size_t a = 0; a < starts.size(); ++a)
      for (std::size_t e = 0; e < starts[a].size(); ++e) k.inputs[a][e] = starts[a][e] + t * k.directions[a][e];
    k.gradient();
    Values all;
    for (const std::span<double> g : k.gradients) all.insert(all.end(), g.begin(), g.end());
    return all;
  };
  double least = INFINITY;
  for (const double h : {1e-4, 1e-6}) {
    const Values above = slopes_at(h), below = slopes_at(-h);
    double error = 0, size = 0;
    std::size_t at = 0;
    for (const std::span<double> p : k.products)
      for (const double x : p) {
        const double difference = (above[at] - below[at]) / (2 * h);
        error += (difference - x) * (difference - x), size += x * x + difference * difference, ++at;
      }
    least = std::min(least, size > 0 ? std::sqrt(error / size) : 0);
  }
  slopes_at(0);
  return least <= 1e-4 ? "" : fmt::format("the Hessian times a direction differs from differences of the gradient by {:.1e} of its size", least);
}

/// Bytes that calls of the gradient ask for: those of a thread that calls nothing else.
double gradient_bytes(const CompiledKernel& k) {
  double bytes = 0;
  std::thread([&] {
    k.gradient();
    bytes = static_cast<double>(core::driver::workspace_bytes());
  }).join();
  return bytes;
}

/// Writes what a kernel is called with (DIRECTORY/NAME.txt), and the arrays of numbers, those of integers,
/// the value, and the gradients, one after another (DIRECTORY/NAME.bin).
void write_arguments(const CompiledKernel& k, const std::string& stem) {
  write_file(stem + ".txt", k.arguments);
  std::string bytes;
  const auto add = [&](const auto& values) {
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  };
  for (const auto& values : k.inputs) add(values);
  for (const auto& values : k.integers) add(values);
  const double value = k.plain();
  add(std::span(&value, 1));
  for (const auto& values : k.gradients) add(values);
  write_file(stem + ".bin", bytes);
}

struct Measured {
  const Kernel* kernel;
  Timing objective, gradient;
  double compile_ms = 0, gradient_bytes = 0, argument_bytes = 0;
  /// How many times faster than with the other options, in the same rounds; 0 where there are none.
  double objective_speedup = 0, gradient_speedup = 0;
  /// The Hessian times a direction in multiples of the gradient, in the same rounds; 0 where it is not asked for.
  double second = 0;
};

/// With so many threads, and in one; or with all passes, and without some.
Ways ways(const Options& options) {
  Ways all{.usual = {.target = Target::cpp, .opt = 3, .threads = options.threads}, .other = {}, .second = options.second};
  if (options.threads == 1 && options.without.empty()) return all;
  all.other = all.usual;
  if (options.without.empty())
    all.other->threads = 1;
  else
    all.other->disabled_passes = options.without;
  return all;
}

/// In a process of its own: a kernel that needs all memory leaves the others theirs.
Measured measure(const Kernel& kernel, const Options& options) {
  constexpr std::int64_t most_bytes = 4'000'000'000;
  constexpr double most_seconds = 120;
  const auto work = [&] {
    const Ways all = ways(options);
    const CompiledKernel k = kernel.compile(all);
    if (const std::string wrong = check_value(k); !wrong.empty()) raise(wrong);
    if (const std::string wrong = check_gradient(k); !wrong.empty()) raise(wrong);
    if (all.second)
      if (const std::string wrong = check_second(k); !wrong.empty()) raise(wrong);
    if (!options.arguments.empty()) write_arguments(k, options.arguments + "/" + kernel.name);
    std::vector<Callable> forms{[&] { k.objective(); }, k.gradient};
    if (all.other) forms.insert(forms.end(), {k.other_objective, k.other_gradient});
    if (all.second) forms.push_back(k.second);
    const std::vector<Timing> timings = paired(
        forms, [&] { k.plain(); }, options.timing());
    const auto& [objective, gradient] = std::tie(timings[0], timings[1]);
    const auto speedup = [&](std::size_t form) {
      return all.other ? ratio(timings[form + 2], timings[form]) : 0;
    };
    return std::vector<double>{
        objective.reference_ms, objective.ms,     objective.ratio, gradient.ms, gradient.ratio,
        gradient_bytes(k),      k.argument_bytes, k.compile_ms,    speedup(0),  speedup(1),
        all.second ? ratio(timings.back(), gradient) : 0};
  };
  const ChildResult result = in_child(work, most_bytes, most_seconds);
  if (!result.ok()) raise(result.failure);
  const std::vector<double>& v = result.values;
  return {&kernel, {v.at(1), v[0], v[2]}, {v[3], v[0], v[4]}, v.at(7), v[5], v[6], v.at(8), v.at(9), v.at(10)};
}

void print_head(const Options& options) {
  fmt::print("{:<15} {:<17} {:>9} {:>15} {:>14} {:>11} {:>13} {:>10}", "kernel", "size", "plain ms",
             "objective/plain", "gradient/plain", "gradient MB", "arguments MB", "compile s");
  if (!options.without.empty())
    fmt::print("   faster than without {}: objective, gradient", fmt::join(options.without, ", "));
  else if (options.threads > 1)
    fmt::print("   faster than in 1 thread: objective, gradient");
  if (options.second) fmt::print(" {:>12}", "hvp/gradient");
  fmt::print("\n");
}
void print(const Measured& m) {
  fmt::print("{:<15} {:<17} {:>9.3f} {:>15.2f} {:>14.2f} {:>11.2f} {:>13.2f} {:>10.2f}", m.kernel->name,
             m.kernel->size, m.objective.reference_ms, m.objective.ratio, m.gradient.ratio,
             m.gradient_bytes / 1e6, m.argument_bytes / 1e6, m.compile_ms / 1e3);
  if (m.gradient_speedup > 0) fmt::print(" {:>36.2f} {:>9.2f}", m.objective_speedup, m.gradient_speedup);
  if (m.second > 0) fmt::print(" {:>12.2f}", m.second);
  fmt::print("\n");
  std::fflush(stdout);
}

struct Goal {
  const char* form;
  Timing Measured::*timing;
  double Measured::*speedup;
  double mean, most;
};
constexpr Goal goals[] = {{"objective", &Measured::objective, &Measured::objective_speedup, 0.8, 1.2},
                          {"gradient", &Measured::gradient, &Measured::gradient_speedup, 1.5, 4}};

void print_goal(const Goal& goal, const std::vector<Measured>& all) {
  const auto ratio = [&](const Measured& m) { return (m.*goal.timing).ratio; };
  const auto worst = std::max_element(all.begin(), all.end(),
                                      [&](const auto& a, const auto& b) { return ratio(a) < ratio(b); });
  double logs = 0;
  for (const Measured& m : all) logs += std::log(ratio(m));
  const double mean = std::exp(logs / static_cast<double>(all.size()));
  const auto met = [](double value, double limit) { return value <= limit ? "met" : "missed"; };
  fmt::print("{}/plain: geometric mean {:.2f} (goal {}: {}), worst {:.2f} by {} (goal {}: {})\n", goal.form,
             mean, goal.mean, met(mean, goal.mean), ratio(*worst), worst->kernel->name, goal.most,
             met(ratio(*worst), goal.most));
}

void print_second(const std::vector<Measured>& all) {
  double logs = 0, most = 0;
  for (const Measured& m : all) logs += std::log(m.second), most = std::max(most, m.second);
  fmt::print("Hessian-vector product/gradient: geometric mean {:.2f} (goal 2.5), worst {:.2f}\n",
             std::exp(logs / static_cast<double>(all.size())), most);
}

std::vector<Row> rows(const std::vector<Measured>& all) {
  std::vector<Row> rows;
  for (const Measured& m : all)
    for (const Goal& goal : goals) {
      Extras extra{{"gradient_bytes", m.gradient_bytes},
                   {"argument_bytes", m.argument_bytes},
                   {"compile_ms", m.compile_ms}};
      const double speedup = m.*goal.speedup;
      if (speedup > 0) extra.emplace_back("speedup", speedup);
      rows.push_back(row(m.kernel->name, goal.form, m.*goal.timing, std::move(extra)));
    }
  return rows;
}

}  // namespace

Values uniform(std::int64_t n, double low, double high) {
  std::uniform_real_distribution<double> distribution(low, high);
  Values all(static_cast<std::size_t>(n));
  for (double& x : all) x = distribution(generator());
  return all;
}

Grid uniform_grid(const std::vector<std::int64_t>& shape, double low, double high) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) n *= d;
  return {uniform(n, low, high), shape};
}

Values dominant(std::int64_t n) {
  Values a = uniform(n * n, 0, 1);
  for (std::int64_t i = 0; i < n; ++i) a[i * n + i] += static_cast<double>(n);
  return a;
}

Whole places(std::int64_t n, std::int64_t bound) {
  std::uniform_int_distribution<std::int64_t> distribution(0, bound - 1);
  Whole all(static_cast<std::size_t>(n));
  for (std::int64_t& x : all) x = distribution(generator());
  return all;
}

int bench_kernels(int argc, char** argv) {
  int status = 0;
  const auto options = parse_options(argc, argv, "ordinary kernels' gradients and values beside plain C++",
                                     "names of kernels; default: all", status, true, true);
  if (!options) return status;
  std::vector<Kernel> kernels = all_kernels(*options);
  for (const std::string& name : options->files)
    if (std::none_of(kernels.begin(), kernels.end(), [&](const Kernel& k) { return k.name == name; }))
      raise(fmt::format("expected the name of a kernel, got '{}'", name));
  if (!options->files.empty())
    std::erase_if(kernels, [&](const Kernel& k) {
      return std::find(options->files.begin(), options->files.end(), k.name) == options->files.end();
    });

  std::vector<Measured> all;
  int wrong = 0;
  print_head(*options);
  for (const Kernel& kernel : kernels) try {
      all.push_back(measure(kernel, *options));
      print(all.back());
    } catch (const Error& e) {
      fmt::print(stderr, "bench: {}: {}\n", kernel.name, e.what());
      ++wrong;
    }
  if (wrong > 0) fmt::print("{} of {} kernels failed\n", wrong, kernels.size());
  if (!all.empty())
    for (const Goal& goal : goals) print_goal(goal, all);
  if (!all.empty() && options->second) print_second(all);
  if (!options->json.empty()) write_file(options->json, json(rows(all)));
  if (!options->svg.empty())
    write_file(options->svg, bar_plot("Kernels", "time over the plain objective's", rows(all),
                                      [](const Row& r) { return r.ratio; }));
  return wrong == 0 ? 0 : 1;
}

}  // namespace lantern::bench
