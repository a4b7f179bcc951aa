// Depth: loops of 10^8 iterations, recursions and trees 10^6 deep, as many nested continuations; time and
// memory of value and derivatives, each in a process of its own, checked against closed forms.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "bench.hpp"
#include "child.hpp"
#include "lantern/lantern.hpp"
#include "options.hpp"
#include "report.hpp"

namespace lantern::bench {
namespace {

/// Newton's iteration for the square root, n times: its limit is sqrt(x), its derivative's 1/(2 sqrt(x)). Not
/// linear, so the reverse pass needs every iterate.
Rep<double> newton(Rep<double> x, Rep<std::int64_t> n) {
  const auto [i, t] = WHILE(
      std::tuple(Rep<std::int64_t>(0), x), [&](Rep<std::int64_t> k, Rep<double>) { return k < n; },
      [&](Rep<std::int64_t> k, Rep<double> s) { return std::tuple(k + 1, 0.5 * (s + x / s)); });
  return t;
}

/// x^n by a recursion of depth n that is not a tail call.
const auto power =
    FUN<double(double, std::int64_t)>("power", [](auto self, Rep<double> x, Rep<std::int64_t> n) {
      return IF(
          n == 0, [&] { return Rep<double>(1.0); }, [&] { return x * self(x, n - 1); });
    });

/// The product of the values of all nodes, and of x for each empty tree.
Rep<double> product(Rep<double> x, Rep<Tree<double>> tree) {
  return TREE(x, tree,
              [&](Rep<double> l, Rep<double> r, Rep<Tree<double>> node) { return l * r * node.value(); });
}

/// n nodes of value 1, each the left or, every second time, the right child of the next.
Tree<double> chain(std::int64_t n) {
  TreeBuilder<double> builder;
  std::int64_t below = -1;
  for (std::int64_t i = 0; i < n; ++i)
    below = i % 2 == 0 ? builder.add(1, below, -1) : builder.add(1, -1, below);
  return builder.finish(below);
}

/// n captures in one reset, each resumed before it adds 1 to the result: all n wait for one another.
double nested_continuations(std::int64_t n) {
  double back = 0;
  Prompt<void> p;
  reset(p, [&] {
    for (std::int64_t i = 0; i < n; ++i)
      shift<int>(p, [&back](auto k) {
        k(0);
        back += 1;
      });
  });
  return back;
}

/// A run: what to call, how often it repeats something, and what it must give.
struct Case {
  std::string problem, form;
  std::int64_t depth;
  std::function<std::function<double()>()> prepare;  ///< in the child: compiles, and gives the call
  double expected;
};

std::vector<Case> cases(bool quick) {
  const std::int64_t iterations = quick ? 1'000'000 : 100'000'000, depth = quick ? 100'000 : 1'000'000;
  const CompileOptions options{.target = Target::cpp, .opt = 3};
  std::vector<Case> all;
  /// The value and both derivatives of a program f(x, argument).
  const auto three = [&](const std::string& name, std::int64_t n, auto f, auto make_argument, double x,
                         double value, double derivative) {
    const auto add = [&](const char* form, auto program, double expected) {
      all.push_back({name, form, n,
                     [=]() -> std::function<double()> {
                       return [compiled = compile(program, options), argument = make_argument(n), x] {
                         return compiled(x, argument);
                       };
                     },
                     expected});
    };
    add("value", f, value);
    add("forward", grad<mode::forward>(f), derivative);
    add("reverse", grad(f), derivative);
  };
  const auto number = [](std::int64_t n) { return n; };
  const auto count = static_cast<double>(depth);
  const double x = 1 + 1 / count;
  three("deep_while", iterations, newton, number, 2, std::sqrt(2.0), 0.5 / std::sqrt(2.0));
  three("deep_recursion", depth, power, number, x, std::pow(x, count), count * std::pow(x, count - 1));
  three("deep_tree", depth, product, chain, x, std::pow(x, count + 1), (count + 1) * std::pow(x, count));
  all.push_back(
      {"deep_continuations", "eager", depth,
       [depth]() -> std::function<double()> { return [depth] { return nested_continuations(depth); }; },
       count});
  // Three operations an iteration are differentiated: a division, a sum, a product.
  all.push_back({"deep_eager_loop", "reverse", depth,
                 [depth]() -> std::function<double()> {
                   return [depth, run = eager(grad(newton))] { return run(2.0, depth); };
                 },
                 0.5 / std::sqrt(2.0)});
  return all;
}

}  // namespace

int bench_deep(int argc, char** argv) {
  constexpr std::int64_t most_bytes = 8'000'000'000;
  constexpr double most_seconds = 120;
  int status = 0;
  const auto options =
      parse_options(argc, argv, "deep loops, recursions, trees and continuations", "", status);
  if (!options) return status;

  std::vector<Row> rows;
  int wrong = 0;
  for (const Case& c : cases(options->quick)) {
    const ChildResult r = in_child(
        [&c] {
          const std::function<double()> call = c.prepare();
          double y = 0;
          const double first = once_ms([&] { y = call(); });
          return std::vector<double>{y, first, once_ms([&] { y = call(); })};
        },
        most_bytes, most_seconds);
    std::string failure = r.failure;
    if (r.ok() && !(std::abs(r.values.at(0) - c.expected) <= 1e-9 * std::abs(c.expected)))
      failure = fmt::format("expected {:.12g}, got {:.12g}", c.expected, r.values[0]);
    if (!failure.empty()) {
      fmt::print(stderr, "bench: {} {}, depth {}: {}\n", c.problem, c.form, c.depth, failure);
      ++wrong;
      continue;
    }
    const double ms = r.values[2];
    // Derivatives are compared with the value that was measured before them.
    double value_ms = std::numeric_limits<double>::quiet_NaN();
    for (const Row& earlier : rows)
      if (earlier.problem == c.problem && earlier.form == "value") value_ms = earlier.ms;
    if (c.form == "value") value_ms = ms;
    rows.push_back({c.problem,
                    c.form,
                    ms,
                    value_ms,
                    ms / value_ms,
                    {{"depth", static_cast<double>(c.depth)},
                     {"first_ms", r.values[1]},
                     {"ns_each", 1e6 * ms / static_cast<double>(c.depth)},
                     {"peak_bytes", static_cast<double>(r.peak_bytes)}}});
  }
  fmt::print("{}", table(rows));
  if (!options->json.empty()) write_file(options->json, json(rows));
  if (!options->svg.empty())
    write_file(options->svg, bar_plot("Depth", "ms", rows, [](const Row& r) { return r.ms; }));
  return wrong == 0 ? 0 : 1;
}

}  // namespace lantern::bench
