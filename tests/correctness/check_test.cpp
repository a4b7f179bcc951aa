// Check::nan: the first NaN or infinity is an error that names its line, its operation and its part.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"

using namespace lantern;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::Equals;

namespace {

const double nan_value = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

// The lines are part of the messages.
Rep<double> logarithm(Rep<double> x) {
  const Rep<double> y = x - 1.0;
  return log(y);
}
constexpr unsigned line_of_log = __LINE__ - 2;
Rep<double> root(Rep<double> x) { return sqrt(x) * 2.0; }
constexpr unsigned line_of_root = __LINE__ - 1;
Rep<double> in_loop(Rep<double> x) {
  return FOR(0, 5, x, [](Rep<std::int64_t>, Rep<double> s) { return exp(s); });
}
constexpr unsigned line_of_exp = __LINE__ - 2;
Rep<double> of_array(Rep<Array<double>> a) {
  const auto b = a - 1.0;
  return sum(log(b) * b);
}
constexpr unsigned line_of_array = __LINE__ - 2;

std::string at(unsigned line, const std::string& rest) {
  return std::string(__FILE__) + ":" + std::to_string(line) + ": error: expected finite values, got " + rest;
}

/// The same message by run and from every target.
template <class F, class... A>
void check_trapped(F f, const std::string& message, const A&... arguments) {
  CHECK_THROWS_WITH(eager(f, Check::nan)(arguments...), Equals(message));
  for (const Target target : {Target::c, Target::cpp, Target::automatic})
    for (const int opt : {0, 3}) {
      CAPTURE(static_cast<int>(target), opt);
      const auto compiled = compile(f, {.target = target, .opt = opt, .check = Check::nan});
      CHECK_THROWS_WITH(compiled(arguments...), Equals(message));
    }
}

template <class F, class... A>
void check_passes(F f, const A&... arguments) {
  const auto expected = eager(f, Check::none)(arguments...);
  CHECK(eager(f, Check::nan)(arguments...) == expected);
  for (const Target target : {Target::c, Target::cpp})
    CHECK(compile(f, {.target = target, .check = Check::nan})(arguments...) == expected);
}

class Environment {
 public:
  explicit Environment(const char* value) { ::setenv("LANTERN_CHECK", value, 1); }
  ~Environment() { ::unsetenv("LANTERN_CHECK"); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
};

}  // namespace

TEST_CASE("a NaN is trapped where it arises, with line and operation") {
  check_trapped(&logarithm, at(line_of_log, "nan from log"), 0.5);
  check_trapped(&logarithm, at(line_of_log, "-inf from log"), 1.0);
  check_passes(&logarithm, 2.5);
}

TEST_CASE("of a derivative the message names the part") {
  const auto f = [](Rep<double> x) { return logarithm(x) * logarithm(x); };
  check_trapped(grad(f), at(line_of_log, "nan from log in the forward part of a derivative"), 0.5);
  check_trapped(grad(&root), at(line_of_root, "inf from div in the backward part of a derivative"), 0.0);
  check_passes(grad(&root), 4.0);
}

TEST_CASE("of nested derivatives the outermost decides what is forward and what is backward") {
  // The second derivative of sqrt(x) is infinite at 0 because the first is, which is forward for the second.
  check_trapped(grad(grad(&root)), at(line_of_root, "inf from div in the forward part of a derivative"), 0.0);
}

TEST_CASE("a value that overflows in a loop is trapped in its trip") {
  check_trapped(&in_loop, at(line_of_exp, "inf from exp"), 1.0);
  check_trapped(grad(&in_loop), at(line_of_exp, "inf from exp in the forward part of a derivative"), 1.0);
}

TEST_CASE("elements of arrays are looked at") {
  check_trapped(&of_array, at(line_of_array, "nan from log"), std::vector<double>{2, 3, 0.5});
  check_passes(&of_array, std::vector<double>{2, 3});
}

TEST_CASE("an argument that is not finite is named as such") {
  const auto f = [](Rep<double> x, Rep<Array<double>> a) { return x + sum(a); };
  const std::vector<double> fine{1, 2}, bad{1, 2, infinity};
  CHECK_THROWS_WITH(eager(f, Check::nan)(nan_value, fine),
                    Equals("argument 1: expected finite values, got nan"));
  CHECK_THROWS_WITH(eager(f, Check::nan)(1.0, bad), Equals("argument 2[2]: expected finite values, got inf"));
  for (const Target target : {Target::c, Target::cpp}) {
    const auto compiled = compile(f, {.target = target, .check = Check::nan});
    CHECK_THROWS_WITH(compiled(nan_value, fine), Equals("argument 1 (x): expected finite values, got nan"));
    CHECK_THROWS_WITH(compiled(1.0, bad), Equals("argument 2[2] (a): expected finite values, got inf"));
    CHECK(compiled(1.0, fine) == 4.0);
  }
}

TEST_CASE("infinities that a program holds on purpose are not trapped") {
  const auto smallest = [](Rep<Array<double>> a) {
    const Rep<double> most = infinity;
    return FOR(0, a.size(), most, [&](Rep<std::int64_t> i, Rep<double> s) { return min(s, a[i]); });
  };
  check_passes(smallest, std::vector<double>{3, 1, 2});
  check_passes([](Rep<double> x) { return select(x > 0.0, x, max(x + infinity, x)); }, 2.0);
}

TEST_CASE("without the check nothing is generated for it, and nothing is trapped") {
  CHECK(std::isnan(compile(&logarithm)(0.5)));
  CHECK(std::isnan(eager(&logarithm)(0.5)));
  CHECK_THAT(compile(&logarithm).source("c"), !Contains("finite"));
}

TEST_CASE("LANTERN_CHECK turns the check on where no option says otherwise") {
  const Environment on("nan");
  CHECK_THROWS_WITH(compile(&logarithm)(0.5), EndsWith("nan from log"));
  CHECK_THROWS_WITH(eager(&logarithm)(0.5), EndsWith("nan from log"));
  CHECK(std::isnan(compile(&logarithm, {.check = Check::none})(0.5)));
}

TEST_CASE("an unknown check is refused") {
  const Environment unknown("inf");
  CHECK_THROWS_WITH(compile(&logarithm), Equals("LANTERN_CHECK: expected nan or none, got 'inf'"));
}

TEST_CASE("the check is the calling thread's: what it calls without it is not checked") {
  const auto inner = eager(&logarithm, Check::none);
  const auto outer = eager(
      [&](Rep<double> x) {
        CHECK(std::isnan(inner(0.5)));
        return log(x);
      },
      Check::nan);
  CHECK_THROWS_WITH(outer(-1.0), EndsWith("nan from log"));
  CHECK(std::isnan(inner(0.5)));
}

TEST_CASE("a GPU is not checked, and says so") {
  const auto f = compile(&logarithm, {.target = Target::c, .check = Check::nan});
  CHECK_THROWS_WITH(f.source("cuda"), Contains("cuda: expected no check for NaN, got one"));
}

TEST_CASE("an array that a loop fills is not looked at before it is filled") {
  const auto dirty = [](Rep<Array<double>> a) { return log(a) * a; };  // leaves NaN in the workspace
  const auto twice = [](Rep<Array<double>> a) {
    return FOR(0, a.size(), fill(Rep<double>(0.0), a.size()),
               [&](Rep<std::int64_t> i, Rep<Array<double>> b) { return b.set(i, 2.0 * a[i]); });
  };
  for (const Target target : {Target::c, Target::cpp}) {
    compile(dirty, {.target = target, .check = Check::none})(std::vector<double>(9, -1.0));
    const auto f = compile(twice, {.target = target, .check = Check::nan});
    CHECK(f(std::vector<double>(9, 1.0)) == std::vector<double>(9, 2.0));
  }
}
