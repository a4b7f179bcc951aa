// What subnormal numbers cost: gradients of loops whose data underflow, as compile() makes them, without such
// numbers, beside the same with strict_math, which keeps them. Neither program has a function of the
// mathematical library, whose strict form would be another. On processors that are as fast with subnormal numbers the
// ratio is about 1.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "bench.hpp"
#include "lantern/lantern.hpp"
#include "options.hpp"
#include "report.hpp"

namespace lantern::bench {
namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using Vec = Rep<Array<double>>;
using Values = std::vector<double>;

/// A recursive filter: what it answers to a pulse dies away through the subnormal numbers.
D filter(Vec pulses, Vec wanted) {
  const auto [y, loss] = FOR(0, pulses.size(), std::tuple(D(0.0), D(0.0)), [&](I i, D before, D sum) {
    const D now = 0.9 * before + pulses[i];
    return std::tuple(now, sum + (now - wanted[i]) * now);
  });
  return loss;
}

/// Points share centres out by weights (1 / (1 + d^2))^128, most of which underflow.
D weights(Vec centres, Vec points) {
  return FOR(0, points.size(), D(0.0), [&](I i, D sum) {
    return FOR(0, centres.size(), sum, [&](I k, D s) {
      const D d = points[i] - centres[k];
      D w = 1.0 / (1.0 + d * d);
      for (int squared = 0; squared < 7; ++squared) w = w * w;
      return s + w * centres[k];
    });
  });
}

/// Largest difference between two gradients, of the largest entry.
double difference(const Values& a, const Values& b) {
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return most / largest;
}

template <class F>
int measure(const char* problem, F f, const Values& x, const Values& data, const Options& options,
            std::vector<Row>& rows) {
  const auto flushed = compile(grad<0>(f), {.target = Target::cpp});
  const auto kept = compile(grad<0>(f), {.target = Target::cpp, .strict_math = true});
  Values g(x.size()), h(x.size());
  const Timing timing =
      paired([&] { flushed.into(g, x, data); }, [&] { kept.into(h, x, data); }, options.timing());
  rows.push_back(row(problem, "flushed", timing));
  const double error = difference(g, h);
  if (error < 1e-12) return 0;
  fmt::print(stderr, "bench: {}: expected the same gradient, got a difference of {:.3g}\n", problem, error);
  return 1;
}

}  // namespace

int bench_subnormals(int argc, char** argv) {
  int status = 0;
  const auto options = parse_options(
      argc, argv, "loops whose data underflow, beside the same with subnormal numbers kept", "", status);
  if (!options) return status;
  std::vector<Row> rows;
  const std::size_t n = options->quick ? 20'000 : 200'000;
  Values pulses(n, 0.0), wanted(n, 0.0);
  for (std::size_t i = 0; i < n; i += 10'000) pulses[i] = wanted[i] = 1.0;
  int wrong = measure("filter", filter, pulses, wanted, *options, rows);
  Values centres, points;
  for (int k = 0; k < 64; ++k) centres.push_back(0.5 * k);
  for (std::size_t i = 0; i < n / 50; ++i)
    points.push_back(32 * static_cast<double>(i) / static_cast<double>(n / 50));
  wrong += measure("weights", weights, centres, points, *options, rows);
  fmt::print("{}", table(rows));
  if (!options->json.empty()) write_file(options->json, json(rows));
  if (!options->svg.empty())
    write_file(options->svg, bar_plot("Loops whose data underflow", "time over that with subnormal numbers",
                                      rows, [](const Row& r) { return r.ratio; }));
  return wrong == 0 ? 0 : 1;
}

}  // namespace lantern::bench
