// The series benchmark of the thesis, "Asymptotic Analysis" (section 6.1): is a derivative slower than
// evaluation by a constant, for all sizes? prev *= -(x - 1), acc += prev, repeated n times; n is an argument
// at run time.
#include "reference/series.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <thread>

#include "bench.hpp"
#include "fit.hpp"
#include "lantern/lantern.hpp"
#include "options.hpp"
#include "plot.hpp"
#include "report.hpp"

namespace lantern::bench {
namespace {

constexpr double kX = 0.5;  // as in the thesis
constexpr double kMostBytes = 8e9;

Rep<double> sum(const Rep<double>& x, const Rep<std::int64_t>& n, const LoopOptions& options) {
  const auto [prev, acc] = FOR(
      0, n, std::tuple(Rep<double>(1.0), Rep<double>(1.0)),
      [&](Rep<std::int64_t>, Rep<double> p, Rep<double> a) {
        const Rep<double> next = p * -(x - 1.0);
        return std::tuple(next, next + a);
      },
      options);
  return acc;
}

Rep<double> series(Rep<double> x, Rep<std::int64_t> n) { return sum(x, n, {}); }

/// Reverse keeps no more than these bytes.
constexpr std::int64_t kCheckpointBytes = 1 << 20;
Rep<double> checkpointed(Rep<double> x, Rep<std::int64_t> n) {
  return sum(x, n, {.memory = kCheckpointBytes});
}

/// The number of repetitions does not show before the end: reverse tapes every one.
Rep<double> taped(Rep<double> x, Rep<std::int64_t> n) {
  const auto [i, prev, acc] = WHILE(
      std::tuple(Rep<std::int64_t>(0), Rep<double>(1.0), Rep<double>(1.0)),
      [&](Rep<std::int64_t> k, Rep<double>, Rep<double>) { return k != n; },
      [&](Rep<std::int64_t> k, Rep<double> p, Rep<double> a) {
        const Rep<double> next = p * -(x - 1.0);
        return std::tuple(k + 1, next, next + a);
      });
  return acc;
}

using Function = std::function<double(double, std::int64_t)>;
struct SeriesForm {
  std::string name;
  Function f;
  bool derivative;
};

std::vector<SeriesForm> forms() {
  const CompileOptions options{.target = Target::cpp, .opt = 3};
  return {{"evaluation", compile(series, options), false},
          {"forward", compile(grad<mode::forward>(series), options), true},
          {"reverse", compile(grad(series), options), true},
          {"taped", compile(grad(taped), options), true},
          {"checkpointed", compile(grad(checkpointed), options), true}};
}

/// The sum in closed form, r = 1 - x: (1 - r^(n+1)) / (1 - r), and its derivative by x.
double value(double x, double n) {
  const double r = 1 - x;
  return (1 - std::pow(r, n + 1)) / (1 - r);
}
double slope(double x, double n) {
  const double r = 1 - x;
  return -(1 - (n + 1) * std::pow(r, n) + n * std::pow(r, n + 1)) / ((1 - r) * (1 - r));
}

/// The result, and the bytes of tape and arena that one call needs in a thread that has made no other.
std::pair<double, std::int64_t> in_new_thread(const Function& f, std::int64_t n) {
  std::pair<double, std::int64_t> result;
  std::thread([&] {
    const double y = f(kX, n);
    result = {y, workspace_bytes()};
  }).join();
  return result;
}

volatile double sink = 0;

/// Where a tape of one number an iteration lies.
std::vector<std::pair<std::string, double>> cache_regimes() {
  const auto numbers = [](int name, double otherwise) {
    const long bytes = sysconf(name);
    return (bytes > 0 ? static_cast<double>(bytes) : otherwise) / sizeof(double);
  };
  return {{"in L2", numbers(_SC_LEVEL2_CACHE_SIZE, 1 << 20)},
          {"in L3", numbers(_SC_LEVEL3_CACHE_SIZE, 1 << 25)},
          {"in memory", std::numeric_limits<double>::infinity()}};
}

void print_fits(const std::map<std::string, std::vector<std::pair<double, double>>>& times) {
  fmt::print("time = c n^slope, least squares over logarithms; a tape of one double an iteration lies\n");
  for (const auto& [form, points] : times) {
    double low = 0;
    for (const auto& [regime, high] : cache_regimes()) {
      std::vector<std::pair<double, double>> inside;
      for (const auto& p : points)
        if (p.first > low && p.first <= high) inside.push_back(p);
      low = high;
      if (inside.size() < 3) continue;
      const PowerLaw law = power_law(inside);
      fmt::print("  {:<12} {:<10} n = {:<8.0e} to {:<8.0e} slope {:.3f}  R2 {:.4f}\n", form, regime,
                 inside.front().first, inside.back().first, law.slope, law.r2);
    }
    if (points.size() < 3) continue;
    const PowerLaw law = power_law(points);
    fmt::print("  {:<12} {:<10} n = {:<8.0e} to {:<8.0e} slope {:.3f}  R2 {:.4f}\n", form, "anywhere",
               points.front().first, points.back().first, law.slope, law.r2);
  }
}

std::vector<std::int64_t> sizes(bool quick) {
  std::vector<std::int64_t> all;
  for (std::int64_t decade = 1000; decade <= (quick ? 1'000'000 : 100'000'000); decade *= 10)
    for (const int step : {1, 2, 5})
      if (step == 1 || decade < (quick ? 1'000'000 : 100'000'000)) all.push_back(step * decade);
  return all;
}

}  // namespace

int bench_series(int argc, char** argv) {
  int status = 0;
  const auto options = parse_options(
      argc, argv, "the series benchmark: evaluation, forward, reverse, taped, checkpointed", "", status);
  if (!options) return status;

  const std::vector<SeriesForm> all = forms();
  std::vector<Row> rows;
  std::map<std::string, std::vector<std::pair<double, double>>> times;
  std::map<std::string, double> bytes_each;
  int wrong = 0;
  for (const std::int64_t n : sizes(options->quick)) {
    const auto count = static_cast<double>(n);
    std::vector<const SeriesForm*> measured;
    std::vector<Callable> calls;
    std::vector<double> bytes;
    for (const SeriesForm& form : all) {
      if (bytes_each[form.name] * count > kMostBytes) {
        fmt::print("series n = {} {}: left out, would take {:.1f} GB\n", n, form.name,
                   bytes_each[form.name] * count / 1e9);
        continue;
      }
      const auto [y, held] = in_new_thread(form.f, n);
      const double expected = form.derivative ? slope(kX, count) : value(kX, count);
      if (!(std::abs(y - expected) <= 1e-12 * std::abs(expected))) {
        fmt::print(stderr, "bench: series n = {} {}: expected {:.15g}, got {:.15g}\n", n, form.name, expected,
                   y);
        ++wrong;
      }
      bytes_each[form.name] = static_cast<double>(held) / count;
      bytes.push_back(static_cast<double>(held));
      measured.push_back(&form);
      calls.push_back([&form, n] { sink = form.f(kX, n); });
    }
    const auto timings = paired(
        calls, [n] { sink = reference::series(kX, n); }, options->timing());
    for (std::size_t i = 0; i < measured.size(); ++i) {
      rows.push_back(row(fmt::format("series_n{}", n), measured[i]->name, timings[i],
                         {{"over_evaluation", ratio(timings[i], timings[0])}, {"bytes", bytes[i]}}));
      times[measured[i]->name].emplace_back(count, timings[i].ms);
    }
  }
  fmt::print("{}", table(rows));
  print_fits(times);
  if (!options->json.empty()) write_file(options->json, json(rows));
  if (!options->svg.empty()) {
    std::vector<Series> lines;
    for (const SeriesForm& form : all) lines.push_back({form.name, times[form.name]});
    write_file(options->svg, line_plot({"Series benchmark", "iterations n", "ms"}, lines));
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace lantern::bench
