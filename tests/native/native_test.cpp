// The corpus of native programs: rewritten = C++'s own control flow, in value and, by differences, in
// derivative.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <sstream>

#include "lantern/compiler/driver/compile.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/print.hpp"
#include "program.hpp"
#include "staged/staged_case.hpp"

namespace native_corpus {

std::vector<Program>& reference_programs() {
  static std::vector<Program> all;
  return all;
}
std::vector<Program>& rewritten_programs() {
  static std::vector<Program> all;
  return all;
}

namespace {

using namespace lantern::core;

constexpr double rounding = 1e-11;

const Program& reference(const std::string& name) {
  for (const Program& p : reference_programs())
    if (p.name == name) return p;
  throw std::runtime_error("no reference for " + name);
}

/// The gradient of the reference by central differences with one Richardson step.
Point differences(const Program& program, const Point& at) {
  Point out;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto slope = [&](double h) {
      Point up = at, down = at;
      up[i] += h, down[i] -= h;
      return (program.on_double(up) - program.on_double(down)) / (2 * h);
    };
    out.push_back((4 * slope(0.5e-4) - slope(1e-4)) / 3);
  }
  return out;
}

template <std::size_t N>
std::function<Rep<double>(const std::array<Rep<double>, N>&)> over(const Staged& f) {
  return [f](const std::array<Rep<double>, N>& x) { return f({x.begin(), x.end()}); };
}
template <std::size_t N>
std::array<double, N> host(const Point& p) {
  std::array<double, N> a{};
  for (std::size_t i = 0; i < N; ++i) a[i] = p[i];
  return a;
}

template <std::size_t N>
void check(const Program& program) {
  const Program& native = reference(program.name);
  const auto f = over<N>(program.on_rep);
  const auto compiled = compile(value_and_grad(f), {.target = Target::c});
  const auto value = compile(f, {.target = Target::c, .opt = 0});
  const auto eagerly = eager(value_and_grad(f));
  for (const Point& p : program.points) {
    REQUIRE(p.size() == N);
    INFO(fmt::format("at ({})", fmt::join(p, ", ")));
    const double expected = native.on_double(p);
    CHECK(program.on_double(p) == Approx(expected).epsilon(rounding).margin(rounding));
    const auto x = host<N>(p);
    CHECK(value(x) == Approx(expected).epsilon(rounding).margin(rounding));
    const auto [y, gradient] = compiled(x);
    CHECK(y == Approx(expected).epsilon(rounding).margin(rounding));
    const auto [eager_y, eager_gradient] = eagerly(x);
    CHECK(eager_y == Approx(expected).epsilon(rounding).margin(rounding));
    const Point slopes = differences(native, p);
    for (std::size_t i = 0; i < N; ++i) {
      INFO("component " << i);
      CHECK(gradient[i] == Approx(slopes[i]).epsilon(2e-6).margin(2e-6));
      CHECK(eager_gradient[i] == Approx(gradient[i]).epsilon(rounding).margin(rounding));
    }
  }
}

std::string graph(const Staged& f, std::size_t arity) {
  const std::vector<ir::Type> types(arity, ir::F64);
  const auto module = driver::stage("program", types, [&](const Datums& in) {
    std::vector<Rep<double>> x;
    for (const Datum& d : in) x.emplace_back(d);
    return Datums{f(x).datum()};
  });
  passes::simplify(*module);  // a variable that nobody reads afterwards is no difference
  // Variables are met in one order and listed by the combinators in another: values have no number here.
  std::istringstream lines(ir::print(*module, {.locations = false, .names = false}));
  std::multiset<std::string> canonical;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::multiset<std::string> all;
    for (std::string word; words >> word;) {
      while (word.ends_with(',') || word.ends_with(':')) word.pop_back();
      all.insert(word.starts_with('%') || word.starts_with("(%") ? "%" : word);
    }
    std::string text;
    for (const std::string& word : all) text += word + ' ';
    canonical.insert(text + '\n');
  }
  std::string text;
  for (const std::string& line : canonical) text += line;
  return text;
}

}  // namespace

TEST_CASE("rewritten programs compute what C++ computes, and its derivative") {
  REQUIRE(rewritten_programs().size() == reference_programs().size());
  for (const Program& program : rewritten_programs()) {
    INFO(program.name);
    try {
      switch (program.points.at(0).size()) {
        case 1:
          check<1>(program);
          break;
        case 2:
          check<2>(program);
          break;
        case 3:
          check<3>(program);
          break;
        case 4:
          check<4>(program);
          break;
        default:
          FAIL("expected 1 to 4 arguments");
      }
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
}

TEST_CASE("a native program and its form with combinators stage the same graph") {
  int pairs = 0;
  for (const Program& program : rewritten_programs()) {
    if (!program.combinator) continue;
    INFO(program.name);
    ++pairs;
    CHECK(graph(program.on_rep, program.points[0].size()) ==
          graph(program.combinator, program.points[0].size()));
  }
  CHECK(pairs >= 22);
}

}  // namespace native_corpus

namespace staged_cases {

std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

TEST_CASE("native loops over arrays of any length, with assigned elements") {
  using namespace lantern;
using namespace lantern::core;
  if (cases().empty()) add_array_cases();
  REQUIRE(cases().size() >= 13);
  for (const Case& c : cases()) {
    INFO(c.name);
    const auto f = compile(c.program, {.target = Target::c});
    const auto reference = compile(value_and_grad(c.program), {.target = Target::c, .opt = 0});
    const auto gradient = compile(value_and_grad(c.program), {.target = Target::c});
    for (const std::vector<double>& a :
         {std::vector<double>{0.3, 1.1, 0.9, 1.7, 0.2}, {1.3, 1.6, 2.4}, {0.7}}) {
      CAPTURE(a);
      CHECK(f(a) == Approx(c.expected(a)).epsilon(1e-12));
      const auto [y, slope] = gradient(a);
      CHECK(y == Approx(c.expected(a)).epsilon(1e-12));
      CHECK(std::get<1>(reference(a)) == slope);
      REQUIRE(slope.size() == a.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        std::vector<double> up = a, down = a;
        up[i] += 1e-5, down[i] -= 1e-5;
        CHECK(slope[i] == Approx((c.expected(up) - c.expected(down)) / 2e-5).epsilon(1e-7).margin(1e-7));
      }
    }
  }
  CHECK(tree_by_recursion() == 22.5);
}

}  // namespace staged_cases
