// The asymptotic experiment of the thesis (section 6.1) for every AD mode, eager and staged: is a derivative
// slower than evaluation by a constant, for all sizes? The program is the thesis': prev *= -(x - 1), acc +=
// prev, repeated n times, five operations each. For every mode a straight line and a parabola are fitted to
// time over n; the ratio of two modes is that of their lines' slopes, as in tables 6.1 to 6.4.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>

#include "bench.hpp"
#include "fit.hpp"
#include "lantern/lantern.hpp"
#include "options.hpp"
#include "plot.hpp"
#include "reference/series.hpp"
#include "report.hpp"

namespace lantern::bench {
namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;

constexpr double kX = 0.5;  // as in the thesis

D staged_series(D x, I n) {
  const auto [prev, acc] = FOR(0, n, std::tuple(D(1.0), D(1.0)), [&](I, D p, D a) {
    const D next = p * -(x - 1.0);
    return std::tuple(next, next + a);
  });
  return acc;
}

/// The loop in checkpointed segments of sqrt(n) iterations.
D segmented(D x, I n) {
  const auto segment = checkpoint(
      sig<std::tuple<double, double>(double, double, double, std::int64_t)>([](D y, D p, D a, I iterations) {
        return FOR(0, iterations, std::tuple(p, a), [&](I, D q, D b) {
          const D next = q * -(y - 1.0);
          return std::tuple(next, next + b);
        });
      }));
  const I side = cast<std::int64_t>(sqrt(cast<double>(n)));
  const auto [prev, acc] =
      FOR(0, side, std::tuple(D(1.0), D(1.0)), [&](I, D p, D a) { return segment(x, p, a, side); });
  return acc;
}

/// Eagerly the loop is one of the host language, as in the thesis.
std::function<D(D)> eager_series(std::int64_t n) {
  return [n](D x) {
    D prev = 1.0, acc = 1.0;
    for (std::int64_t i = 0; i < n; ++i) {
      prev = prev * -(x - 1.0);
      acc = prev + acc;
    }
    return acc;
  };
}

/// A mode: what to call for n repetitions.
struct Form {
  std::string name;
  std::function<double(std::int64_t)> run;
  bool derivative = true;
  std::int64_t largest = std::numeric_limits<std::int64_t>::max();  ///< n to which it is measured
  std::vector<std::pair<double, double>> times = {};
};

/// Of an eager form by a mode's rule: continuations, and what waits for them, stand on the stack.
constexpr std::int64_t kOnStack = 100'000;
/// Of one that is quadratic.
constexpr std::int64_t kQuadratic = 2000;

template <class F>
Form staged(const char* name, F f, bool derivative = true) {
  const auto compiled = compile(f, {.target = Target::cpp, .opt = 3});
  return {name, [compiled](std::int64_t n) { return compiled(kX, n); }, derivative};
}

std::vector<Form> staged_forms() {
  return {staged("evaluate", staged_series, false),
          staged("forward", grad<mode::forward>(staged_series)),
          staged("stateful", grad<mode::reverse>(staged_series)),
          staged("cps", grad<mode::cps>(staged_series)),
          staged("global_tape", grad<mode::global_tape>(staged_series)),
          staged("functional", grad<mode::functional>(staged_series)),
          staged("continuation", grad<mode::continuation>(staged_series)),
          staged("taped", grad<mode::taped>(staged_series)),
          staged("checkpointed", grad<mode::checkpointed>(staged_series)),
          staged("divide_and_conquer", grad<mode::divide_and_conquer>(staged_series))};
}

template <auto... O>
Form eagerly(const char* name, std::int64_t largest = std::numeric_limits<std::int64_t>::max()) {
  return {name, [](std::int64_t n) { return eager(grad<O...>(eager_series(n)))(kX); }, true, largest};
}

/// The rules of the papers, as they are written, and the fast paths beside them.
std::vector<Form> eager_forms() {
  constexpr form literal = form::literal, fast = form::fast;
  return {
      {"evaluate", [](std::int64_t n) { return eager(eager_series(n))(kX); }, false},
      {"evaluate, handler",
       [](std::int64_t n) {
         const auto program = [f = eager_series(n)](const core::Datums& x) {
           return core::Datums{f(D(x[0])).datum()};
         };
         return core::ad::evaluate_by_handler({"series", program}, {core::Datum::number(kX, ir::F64)})[0].f();
       },
       false},
      eagerly<mode::forward, fast>("forward, fast"),
      eagerly<mode::forward, literal>("forward, handler"),
      eagerly<mode::reverse, fast>("stateful, fast"),
      eagerly<mode::reverse, literal>("stateful, shift", kOnStack),
      eagerly<mode::global_tape>("global_tape", kOnStack),
      eagerly<mode::functional>("functional", kOnStack),
      eagerly<mode::continuation, literal>("continuation", kQuadratic),
      eagerly<mode::taped, fast>("taped, fast"),
      eagerly<mode::taped, literal>("taped, handler"),
      eagerly<mode::checkpointed>("checkpointed", kOnStack),
      eagerly<mode::divide_and_conquer>("divide_and_conquer", kQuadratic),
      eagerly<mode::closures>("closures", kOnStack),
      eagerly<mode::checkpointed_closures>("checkp. closures", kOnStack)};
}

/// The sum in closed form, r = 1 - x: (1 - r^(n+1)) / (1 - r), and its derivative by x.
double value(double n) {
  const double r = 1 - kX;
  return (1 - std::pow(r, n + 1)) / (1 - r);
}
double slope(double n) {
  const double r = 1 - kX;
  return -(1 - (n + 1) * std::pow(r, n) + n * std::pow(r, n + 1)) / ((1 - r) * (1 - r));
}

volatile double sink = 0;

/// Measures every form at every size. The number of wrong results.
int measure(const char* group, std::vector<Form>& forms, const std::vector<std::int64_t>& sizes,
            const TimingOptions& options, std::vector<Row>& rows) {
  int wrong = 0;
  for (const std::int64_t n : sizes) {
    std::vector<Form*> measured;
    std::vector<Callable> calls;
    for (Form& form : forms) {
      if (n > form.largest) continue;
      const double y = form.run(n),
                   expected = form.derivative ? slope(static_cast<double>(n)) : value(static_cast<double>(n));
      if (!(std::abs(y - expected) <= 1e-12 * std::abs(expected))) {
        fmt::print(stderr, "bench: {} {} n = {}: expected {:.15g}, got {:.15g}\n", group, form.name, n,
                   expected, y);
        ++wrong;
      }
      measured.push_back(&form);
      calls.push_back([&form, n] { sink = form.run(n); });
    }
    const auto timings = paired(
        calls, [n] { sink = reference::series(kX, n); }, options);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      rows.push_back(row(fmt::format("{}_n{}", group, n), measured[i]->name, timings[i],
                         {{"over_evaluation", ratio(timings[i], timings[0])}}));
      measured[i]->times.emplace_back(static_cast<double>(n), timings[i].ms);
    }
  }
  return wrong;
}

constexpr double kLinear = 0.99;   ///< R^2 of a straight line from which on growth counts as linear
constexpr double kOperations = 5;  ///< of a repetition

/// A table as 6.1 to 6.4 of the thesis, with what else the measurements say: the slope in a plot of
/// logarithms, which is 1 for linear growth, and the time of an operation.
void print_table(const char* group, const std::vector<Form>& forms) {
  fmt::print("{:<8} {:<18} {:>10} {:>13} {:>10} {:>7} {:>14} {:>13}\n", group, "Mode", "Linear R2",
             "Quadratic R2", "Order", "Ratio", "log-log slope", "ns/operation");
  const double unit = straight_line(forms[0].times).slope;
  for (const Form& form : forms) {
    const Line line = straight_line(form.times);
    const double quadratic = parabola_r2(form.times);
    const double order = power_law(form.times).slope;
    // A disturbed measurement spoils a fit over times; the order shows in their logarithms.
    const bool linear = line.r2 >= kLinear || std::abs(order - 1) <= 0.05;
    fmt::print("{:<8} {:<18} {:>10.4f} {:>13.4f} {:>10} {:>7} {:>14.3f} {:>13.2f}\n", "", form.name, line.r2,
               quadratic,
               linear                 ? "Linear"
               : quadratic >= kLinear ? "Quadratic"
                                      : "Nonlinear",
               linear ? fmt::format("{:.2f}", line.slope / unit) : "-", order,
               line.slope * 1e6 / kOperations);
  }
}

/// Bytes that checkpointed reverse mode keeps of the loop in sqrt(n) segments of sqrt(n) iterations: a state for
/// each segment, and what one segment records. It grows as sqrt(n), where the whole loop's record grows as n.
int print_memory(std::vector<Row>& rows) {
  int wrong = 0;
  std::vector<std::pair<double, double>> whole, parts;
  const auto all = compile(grad<mode::checkpointed>(staged_series), {.target = Target::cpp, .opt = 3});
  const auto some = compile(grad<mode::checkpointed>(segmented), {.target = Target::cpp, .opt = 3});
  for (const std::int64_t side : {100, 200, 500, 1000, 2000}) {
    const std::int64_t n = side * side;
    const auto held = [&](const auto& f) {
      double y = 0, bytes = 0;
      std::thread([&] {
        y = f(kX, n);
        bytes = static_cast<double>(workspace_bytes());
      }).join();
      wrong += !(std::abs(y - slope(static_cast<double>(n))) <= 1e-12 * std::abs(y));
      return bytes;
    };
    const double a = held(all), b = held(some);
    whole.emplace_back(static_cast<double>(n), a);
    parts.emplace_back(static_cast<double>(n), b);
    rows.push_back({fmt::format("memory_n{}", n), "whole", 0, 0, 0, {{"bytes", a}}});
    rows.push_back({fmt::format("memory_n{}", n), "segments", 0, 0, 0, {{"bytes", b}}});
    fmt::print(
        "memory   n = {:<8} whole {:>12.0f} bytes, in sqrt(n) checkpointed segments {:>9.0f}: {:.0f} for "
        "each "
        "of sqrt(n)\n",
        n, a, b, b / static_cast<double>(side));
  }
  fmt::print("memory   log-log slope: whole {:.3f}, segments {:.3f}\n", power_law(whole).slope,
             power_law(parts).slope);
  return wrong;
}

std::vector<std::int64_t> sizes(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> all;
  for (std::int64_t decade = first; decade <= last; decade *= 10)
    for (const int step : {1, 2, 5})
      if (step * decade <= last) all.push_back(step * decade);
  return all;
}

}  // namespace

int bench_modes(int argc, char** argv) {
  int status = 0;
  const auto options = parse_options(
      argc, argv, "the asymptotic experiment of the thesis for every mode, eager and staged", "", status);
  if (!options) return status;
  std::vector<Row> rows;
  std::vector<Form> eagerly = eager_forms(), by_stage = staged_forms();
  // The fit hangs on the largest sizes, of which a round takes seconds.
  TimingOptions timing = options->timing();
  timing.clock = Clock::processor;
  if (!options->quick) timing.limit_ms = 30'000;
  TimingOptions staged_timing = options->timing();
  staged_timing.clock = Clock::processor;
  int wrong = measure("eager", eagerly, sizes(100, options->quick ? 20'000 : 1'000'000), timing, rows);
  wrong += measure("staged", by_stage, sizes(10'000, options->quick ? 1'000'000 : 10'000'000), staged_timing,
                   rows);
  print_table("eager", eagerly);
  print_table("staged", by_stage);
  wrong += print_memory(rows);
  if (!options->json.empty()) write_file(options->json, json(rows));
  if (!options->svg.empty()) {
    const auto plot = [](const char* title, const std::vector<Form>& forms) {
      std::vector<Series> lines;
      for (const Form& form : forms) lines.push_back({form.name, form.times});
      return line_plot({title, "repetitions n", "ms"}, lines);
    };
    write_file(options->svg, stacked({plot("Every mode on the thesis's series, eager", eagerly),
                                      plot("Every mode on the thesis's series, staged", by_stage)}));
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace lantern::bench
