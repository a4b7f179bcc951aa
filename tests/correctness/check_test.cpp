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

TEST_CASE("a value that overflows in a loop is trapped in its iteration") {
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

TEST_CASE("a number that a choice does not take is not looked at") {
  const auto logarithm_of_positive = [](Rep<double> x) { return select(x > 0.0, 2.0 * log(x), x); };
  // The second derivative of abs at 0 is none, and nothing flows there.
  const auto beside_a_kink = [](Rep<double> x) { return max(abs(x) * x, 1.0 + x * x); };
  const auto in_a_loop = [](Rep<Array<double>> a) {
    return FOR(0, a.size(), Rep<double>(0.5), [&](Rep<std::int64_t> i, Rep<double> s) {
      return select(a[i] > s, 0.5 * a[i], abs(a[i]) - 0.25 * s);
    });
  };
  const auto slopes = [&](Rep<Array<double>> a) { return sum(grad([&](Rep<Array<double>> b) { return in_a_loop(b) * in_a_loop(b); })(a)); };
  const std::vector<double> ties{0.0, 0.0, 0.5, -0.5, 1.0, 0.0, 0.25};
  for (const Target target : {Target::c, Target::cpp}) {
    const CompileOptions checked{.target = target, .check = Check::nan};
    CHECK(compile(logarithm_of_positive, checked)(-1.0) == -1.0);
    CHECK(compile(grad(grad(beside_a_kink)), checked)(0.0) == 2.0);
    CHECK(compile(grad(slopes), checked)(ties) == eager(grad(slopes))(ties));
    // What is taken is.
    CHECK_THROWS_WITH(compile(grad(grad([](Rep<double> x) { return max(abs(x) * x, x * x - 1.0); })), checked)(0.0),
                      Contains("expected finite values, got nan from div"));
    CHECK_THROWS_WITH(compile(logarithm_of_positive, checked)(infinity - 1.0), Contains("argument 1"));
    CHECK_THROWS_WITH(compile([&](Rep<double> x) { return logarithm_of_positive(x * 1e300); }, checked)(1e300),
                      Contains("check_test.cpp:"));
  }
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

TEST_CASE("an array of which only the size is needed is not looked at") {
  using D = Rep<double>;
  using I = Rep<std::int64_t>;
  using A = Rep<Array<double>>;
  const auto program = [](D x, D y, A a, A b, Rep<bool> c) {
    IF(
        c, [&] { return std::tuple(b, c); },
        [&] {
          FOR(0, a.size(), fill(D(0.0), a.size()), [&](I, A v) { return v.set(1, y); });
          return std::tuple(b, c);
        });
    return D(1.0) + 0.0 * x;
  };
  const std::vector<double> a(5, 1.0);
  for (const Target target : {Target::c, Target::cpp})
    for (const int opt : {0, 3}) {
      const auto g = compile(grad<0, 1>(program), {.target = target, .opt = opt, .check = Check::nan});
      CHECK(g(1.0, 2.0, a, a, false) == std::tuple(0.0, 0.0));
    }
  // Of the logarithm and the product only the size is asked for.
  const auto size_only = [](A x) { return cast<double>((log(x) * x).size()) + x[0]; };
  for (const Target target : {Target::c, Target::cpp})
    for (const int opt : {0, 3})
      CHECK(compile(size_only, {.target = target, .opt = opt, .check = Check::nan})(std::vector<double>{-1.0, 2.0}) ==
            1.0);
}

TEST_CASE("of an update the part that is changed is looked at, before and after") {
  using D = Rep<double>;
  using I = Rep<std::int64_t>;
  using A = Rep<Array<double>>;
  // An infinity that the array holds on purpose, in the element that is added to and in others.
  const auto lowest = [](A a, A costs) {
    const A start = fill(D(infinity), a.size());
    const A best = FOR(0, a.size(), start, [&](I i, A b) {
      return b.set(i % 2, min(b[i % 2], a[i]) + costs[i]);
    });
    return FOR(0, a.size(), best, [&](I i, A b) { return b.set(i, b[i] + costs[i]); })[0];
  };
  check_passes(lowest, std::vector<double>{3, 1, 2}, std::vector<double>{0.5, 0.25, 1});
  // One that arises there.
  const auto overflow = [](A a) {
    return sum(FOR(0, a.size(), a, [&](I i, A b) { return b.set(0, b[0] * a[i]); }));
  };
  CHECK_THROWS_WITH(compile(overflow, {.target = Target::c, .check = Check::nan})(std::vector<double>{1e200, 1e200}),
                    EndsWith("inf from mul"));
  // The gradient of reads at one place adds up there.
  const auto reads = [](A a) {
    return FOR(0, a.size(), 0.0, [&](I i, D s) { return s + a[0] * a[i]; });
  };
  const std::vector<double> x{1.5, -2.0, 0.5};
  for (const Target target : {Target::c, Target::cpp})
    for (const int opt : {0, 1, 3})
      CHECK(compile(grad(reads), {.target = target, .opt = opt, .check = Check::nan})(x) == eager(grad(reads))(x));
}

TEST_CASE("rows that are added to are looked at, and matrix products") {
  using A = Rep<Array<double>>;
  using M = Rep<Tensor<double, dyn, dyn>>;
  const auto program = [](M m, A v) {
    const auto w = matmul(m, transpose(m));
    return FOR(0, m.dim(0), sum(w * w), [&](Rep<std::int64_t> i, Rep<double> s) { return s + dot(m.row(i), v) * s; });
  };
  const std::vector<double> data{0.3, -0.2, 0.5, 0.1, 0.4, -0.6};
  const TensorView<const double> m(data.data(), {2, 3});
  const std::vector<double> v{0.5, -1.0, 2.0};
  const auto expected = eager(grad<0, 1>(program))(m, v);
  for (const Target target : {Target::c, Target::cpp})
    for (const int opt : {0, 1, 2, 3}) {
      const auto checked = compile(grad<0, 1>(program), {.target = target, .opt = opt, .check = Check::nan});
      const auto found = checked(m, v);
      for (std::size_t i = 0; i < 6; ++i)
        CHECK(std::get<0>(found).data[i] == Approx(std::get<0>(expected).data[i]));
      for (std::size_t i = 0; i < 3; ++i) CHECK(std::get<1>(found)[i] == Approx(std::get<1>(expected)[i]));
    }
}

TEST_CASE("the check is an operation of the graph, which passes see") {
  const auto f = [](Rep<double> x) { return log(x) * 2.0; };
  const std::string with = compile(f, {.target = Target::c, .check = Check::nan}).source("ir");
  CHECK_THAT(with, Contains("finite[log] %"));
  CHECK_THAT(with, Contains("finite[mul] %"));
  CHECK_THAT(compile(f, {.target = Target::c, .check = Check::none}).source("ir"), !Contains("finite"));
}

// An adjoint of an array that a loop changes and reads begins as -0, which a reciprocal tells from 0.
TEST_CASE("what tells nothing from 0 is no infinite value") {
  using V = Rep<Array<double>>;
  const auto f = [](V a) {
    const V b = FOR(1, a.size(), a, [&](auto i, V s) {
      return s.set(i, IF(s[i - 1] > 0.0, [&] { return 2.0 * s[i - 1]; }, [&] { return sqrt(s[i]); }));
    });
    return b[1] + b[0];
  };
  for (const Target target : {Target::c, Target::cpp})
    for (const int opt : {0, 3}) {
      const auto g = compile(grad(f), {.target = target, .opt = opt, .check = Check::nan});
      CHECK(g(std::vector<double>{1, 4, 9}) == std::vector<double>{3, 0, 0});
    }
}
