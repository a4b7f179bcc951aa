// Random programs: value, gradient and second derivative agree in all ways, and with differences where
// smooth.
#include <fmt/format.h>

#include "agree.hpp"
#include "depth.hpp"
#include "random_source.hpp"
#include "watched.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using Scalars = std::array<D, 2>;
using OfScalars = agree::Agreement<double, Scalars, A, I>;
using OfArray = agree::Agreement<double, A, I>;

const std::vector<double> elements{0.35, -0.8, 1.15};

/// What the two kinds of program have in common: the tree, and the ways for this seed.
struct Case {
  unsigned seed;
  std::unique_ptr<SourceNode> tree;
  Ways ways;

  explicit Case(unsigned s)
      : seed(s), tree(RandomSource(s, s % 10 == 0 ? 12 : 8 + static_cast<int>(s % 32)).program(2)) {
    ways.without_unwind = s % 3 == 0;
    ways.clang = s % 10 == 0;  // it costs a second
    ways.only_smooth = true;
    // Sums of large terms that cancel: looser than for single operations.
    ways.tolerance = 1e-8;
    ways.difference_tolerance = 1e-5;
  }
};

/// x, y are differentiated; the array and n are data.
OfScalars::Scalar program_of_scalars(const SourceNode& tree) {
  return [&tree](Scalars x, A a, I n) { return SourceInterpreter::run(tree, {{x[0], x[1]}, {n}, a, {}, 0}); };
}
/// The array is differentiated; its first two elements are the numbers.
OfArray::Scalar program_of_array(const SourceNode& tree) {
  return [&tree](A a, I n) { return SourceInterpreter::run(tree, {{a[0], a[1]}, {n}, a, {}, 0}); };
}

/// Empty, or what disagrees, with the program.
std::string run(unsigned seed) {
  const Case c(seed);
  const std::string name = "seed " + std::to_string(seed);
  std::string text, graph;
  const auto graph_of = [](const auto& f) {
    try {
      return compile(f, {.target = Target::c, .opt = 0}).source("ir");
    } catch (const std::exception& e) {
      return std::string("not staged: ") + e.what();
    }
  };
  if (seed % 2 == 0) {
    const auto f = program_of_scalars(*c.tree);
    text = OfScalars(c.ways, name, f, {{0.6, -1.1}}, elements, 2).run();
    if (!text.empty()) graph = graph_of(f);
  } else {
    const auto f = program_of_array(*c.tree);
    text = OfArray(c.ways, name, f, {elements}, 2).run();
    if (!text.empty()) graph = graph_of(f);
  }
  return text.empty() ? "" : text + c.tree->str() + "\n" + graph;
}

/// With the check for NaN and without: the same numbers.
void check_watched(unsigned seed) {
  const Case c(seed);
  const auto program = [f = program_of_array(*c.tree)](A a, I n) { return f(a, n); };
  compare_watched("seed " + std::to_string(seed), value_and_grad<0>(program), watched_ways(seed % 10 == 0),
                  std::vector{elements, std::vector<double>{-0.4, 1.3, 0.2, 2.1}},
                  [](const auto& f, const std::vector<double>& a) {
                    const auto [value, slopes] = f(a, 2);
                    std::vector<double> all = slopes;
                    all.push_back(value);
                    return all;
                  });
}

template <class Given>
std::vector<double> numbers_of(const Given& given) {
  std::vector<double> all = std::get<1>(given);
  all.push_back(std::get<0>(given));
  return all;
}
bool close_to(const std::vector<double>& found, const std::vector<double>& expected) {
  return std::ranges::equal(found, expected, [](double a, double b) { return agree::close(a, b, 1e-8); });
}

/// Empty where `check` finds nothing, and where compiled code says that it cannot be: a derivative of a
/// function inside the same function would have an order that depends on run time.
template <class Check>
std::string unless_refused(const Check& check, unsigned seed) {
  try {
    return check(seed);
  } catch (const Error& e) {
    if (std::string(e.what()).find("the order of the derivative") == std::string::npos) throw;
    return "";
  }
}

/// Value and gradient of a small program, eagerly and by libtcc: milliseconds each, for campaigns of very
/// many.
std::string run_small(unsigned seed) {
  const auto tree = RandomSource(seed, 3 + static_cast<int>(seed % 14)).program(2);
  const auto f = value_and_grad<0>([&tree](A a, I n) { return program_of_array(*tree)(a, n); });
  const int opt = static_cast<int>(seed % 4);
  const std::vector<double> expected = numbers_of(eager(f)(elements, 2));
  const std::vector<double> found = numbers_of(compile(f, {.target = Target::c, .opt = opt})(elements, 2));
  if (close_to(found, expected)) return "";
  return fmt::format("seed {}, opt {}: {} eagerly, {} compiled\n{}\n", seed, opt, agree::list(expected),
                     agree::list(found), tree->str());
}

/// Of programs whose functions have infinite slopes where many of the numbers are: where eager evaluation
/// gives numbers, compiled code gives the same, and no NaN.
std::string run_near_poles(unsigned seed) {
  static const std::array<std::vector<double>, 4> points{{{0, 0, 0}, {0, 1, -1}, {1, 0, 0}, {-1, 1, 0}}};
  const std::vector<double>& at = points[seed % points.size()];
  const auto tree = RandomSource(seed, 6 + static_cast<int>(seed % 30), true).program(2);
  const auto f = value_and_grad<0>([&tree](A a, I n) { return program_of_array(*tree)(a, n); });
  const std::vector<double> expected = numbers_of(eager(f)(at, 2));
  if (!std::ranges::all_of(expected, [](double v) { return std::isfinite(v); })) return "";
  for (const int opt : {0, 3}) {
    const std::vector<double> found = numbers_of(compile(f, {.target = Target::c, .opt = opt})(at, 2));
    if (!close_to(found, expected))
      return fmt::format("seed {}, opt {} at {}: {} eagerly, {} compiled\n{}\n", seed, opt, agree::list(at),
                         agree::list(expected), agree::list(found), tree->str());
  }
  return "";
}

}  // namespace

TEST_CASE("random programs with infinite slopes: no NaN where eager evaluation has none", "[random]") {
  Seeds(300, 1500).each([](unsigned seed) { agree::report(unless_refused(run_near_poles, seed)); });
}

// What tools/sanitize runs, in a build with sanitizers.
TEST_CASE("small random programs, eagerly and by libtcc", "[random]") {
  Seeds(20, 2000).each([](unsigned seed) { agree::report(unless_refused(run_small, seed)); });
}

TEST_CASE("random programs, their values checked", "[random][check]") {
  Seeds(20, 6000).each([](unsigned seed) {
    const auto check = [](unsigned s) { return check_watched(s), std::string(); };
    unless_refused(check, seed);
  });
}

// LANTERN_FIRST_SEED and LANTERN_SEEDS choose others than the suite's.
TEST_CASE("random programs", "[random]") {
  Seeds(80, 5000).each([](unsigned seed) { agree::report(run(seed + 1)); });
}
