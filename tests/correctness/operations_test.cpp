// Every operation of the table: value and derivatives in all ways, in double and float; corners exactly as
// documented.
#include <limits>
#include <set>

#include "agree.hpp"
#include "lantern/ir/op.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double>>;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Names of the operations that the tests of this file exercise.
std::set<std::string>& exercised() {
  static std::set<std::string> names;
  return names;
}
void exercises(std::initializer_list<const char*> names) {
  for (const char* n : names) exercised().insert(n);
}

/// An operation that has no spelling of its own in the user's language.
template <class R, class... X>
R operation(ir::Opcode code, const X&... x) {
  return R(perform({code, 0, {}}, {x.datum()...}));
}

/// Programs of N numbers, in double and in float.
template <std::size_t N>
struct InBoth {
  std::function<D(std::array<D, N>)> in_double;
  std::function<Rep<float>(std::array<Rep<float>, N>)> in_float;
};

template <std::size_t N>
void check_in_both(const std::string& name, const InBoth<N>& f, const std::vector<std::array<double, N>>& points,
                   const std::vector<std::array<double, N>>& near) {
  exercises({name.c_str()});
  using Double = agree::Agreement<double, std::array<D, N>>;
  agree::report(Double({.order = 3}, name, f.in_double, points).run());
  if (!near.empty())
    agree::report(Double({.clang = false, .step = 1e-5, .tolerance = 1e-9, .difference_tolerance = 1e-6}, name,
                         f.in_double, near)
                      .run());
  std::vector<std::array<float, N>> singles;
  std::vector<std::vector<double>> value, gradient;
  for (const auto& p : points) {
    auto& s = singles.emplace_back();
    std::array<double, N> rounded;
    for (std::size_t i = 0; i < N; ++i) rounded[i] = s[i] = static_cast<float>(p[i]);
    value.push_back({eager(f.in_double)(rounded)});
    gradient.push_back(agree::numbers(eager(grad(f.in_double))(rounded)));
  }
  agree::Agreement<float, std::array<Rep<float>, N>> single({}, name + " in float", f.in_float, singles);
  single.judge(0, "double", value, 1e-5);
  single.judge(1, "double", gradient, 1e-4);
  agree::report(single.run());
}

/// Away from corners all ways agree to the third order; near them, with shorter steps; and in float. Double
/// judges float.
template <std::size_t N, class F>
void check_operation(const char* name, F f, const std::vector<std::array<double, N>>& points,
                     const std::vector<std::array<double, N>>& near = {}) {
  check_in_both<N>(name, {agree::over_array<double, N>(f), agree::over_array<float, N>(f)}, points, near);
}

/// Functions that std::complex has too: the complex step judges as well.
template <std::size_t N, class F>
void check_analytic_operation(const char* name, F f, const std::vector<std::array<double, N>>& points,
                              const std::vector<std::array<double, N>>& near = {}) {
  check_operation<N>(name, f, points, near);
  check_analytic<N>({.order = 1, .opt0 = false, .without_unwind = false, .clang = false}, name, f, points);
}

/// At a corner every way gives exactly this value and gradient.
template <std::size_t N, class F>
void check_corner(const std::string& name, F f, const std::array<double, N>& at, double value,
                  const std::vector<double>& gradient) {
  auto corner = agree::at_points<double, N>({.order = 1, .differences = false}, name, f, {at});
  corner.judge(0, "documented", {{value}}, 0);
  corner.judge(1, "documented", {gradient}, 0);
  agree::report(corner.run());
}

template <class R, class... X>
void check_program_value(const std::string& name, const std::function<Rep<R>(Rep<X>...)>& program, R expected, X... x) {
  INFO(name);
  CHECK(eager(program)(x...) == expected);
  for (int opt : {0, 3}) CHECK(compile(program, {.target = Target::c, .opt = opt})(x...) == expected);
  CHECK(compile(program, {.target = Target::cpp})(x...) == expected);
}
/// A program without derivatives gives the same, expected result however it is run.
template <class R, class... X, class F>
void check_value(const std::string& name, F f, R expected, X... x) {
  check_program_value(name, std::function<Rep<R>(Rep<X>...)>(f), expected, x...);
}

/// A program of an array, to the second order; Clang takes seconds for long element-wise ones.
void check_tensor(std::initializer_list<const char*> names, const std::function<D(A)>& f,
                  const std::vector<double>& x, bool clang = true) {
  exercises(names);
  check_all({.clang = clang}, *names.begin(), f, x);
}

/// Elements of `a` from `from` on as a matrix.
M matrix(const A& a, std::int64_t from, std::int64_t rows, std::int64_t columns) {
  return operation<M>(ir::Opcode::reshape_, a.slice(from, from + rows * columns),
                      zeros<double>({rows, columns}));
}
/// A scalar that depends on every element in its own way.
template <class T>
D blend(const Rep<T>& t) {
  return sum(t * sin(t)) + sum(t) * sum(t * t);
}

const std::vector<double> six{0.3, -1.2, 0.7, 1.9, -0.4, 0.85};
const std::vector<double> ten{0.3, -1.2, 0.7, 1.9, -0.4, 0.85, 1.3, -0.6, 0.2, 0.9};

}  // namespace

// ---- scalars ----

TEST_CASE("arithmetic", "[operations]") {
  const std::vector<std::array<double, 2>> pairs{{1.3, 0.7}, {-2.0, 3.0}, {0.0, -1.5}};
  check_analytic_operation<2>(
      "add", [](auto x, auto y) { return (x + y) * x; }, pairs);
  check_analytic_operation<2>(
      "sub", [](auto x, auto y) { return (x - y) * y; }, pairs);
  check_analytic_operation<2>(
      "mul", [](auto x, auto y) { return x * y * y; }, pairs);
  check_analytic_operation<2>("div", [](auto x, auto y) { return x / y; }, pairs,
                              {{1.0, 0.01}, {-2.0, -0.02}});
  check_analytic_operation<1>("neg", [](auto x) { return -x * x; }, {{0.4}, {0.0}, {-3.0}});
  check_operation<3>("fma", [](auto x, auto y, auto z) { return fma(x, y, z) * y; },
                     {{1.1, -0.7, 2.0}, {0.0, 1.0, 0.0}});
  check_operation<2>("min", [](auto x, auto y) { return min(x, y) * x; },
                     {{1.0, 2.0}, {2.0, 1.0}, {-1.0, 0.5}});
  check_operation<2>("max", [](auto x, auto y) { return max(x, y) * x; },
                     {{1.0, 2.0}, {2.0, 1.0}, {-1.0, 0.5}});
  check_operation<1>("abs", [](auto x) { return abs(x) * x; }, {{1.5}, {-1.5}}, {{0.001}, {-0.001}});
  check_operation<1>("sign", [](auto x) { return sign(x) * x * x; }, {{1.5}, {-1.5}}, {{0.001}, {-0.001}});
  check_operation<1>("floor", [](auto x) { return floor(x) * x * x; }, {{1.5}, {-1.5}, {0.25}},
                     {{1.999}, {2.001}});
  check_operation<1>("ceil", [](auto x) { return ceil(x) * x * x; }, {{1.5}, {-1.5}, {0.25}},
                     {{1.999}, {2.001}});
  check_operation<1>("trunc", [](auto x) { return trunc(x) * x * x; }, {{1.5}, {-1.5}, {0.25}},
                     {{1.999}, {2.001}});
  check_operation<1>("round", [](auto x) { return round(x) * x * x; }, {{1.6}, {-1.6}, {0.25}},
                     {{1.499}, {-1.501}});
  check_operation<2>("fmod", [](auto x, auto y) { return fmod(x, y) * x * y; },
                     {{5.3, 2.0}, {-5.3, 2.0}, {5.3, -2.0}, {0.5, 0.7}});
  check_operation<2>("copysign", [](auto x, auto y) { return copysign(x, y); },
                     {{3.0, 4.0}, {-0.3, 0.1}, {0.7, -2.0}, {-5.0, -0.2}});
  check_operation<2>("hypot", [](auto x, auto y) { return hypot(x, y); }, {{3.0, 4.0}, {-0.3, 0.1}, {0.0, 2.0}});
}

TEST_CASE("copysign asks the sign of zeros, which nothing else tells", "[operations]") {
  const auto f = [](D x, D y) { return copysign(x, y); };
  for (const Target target : {Target::c, Target::cpp}) {
    const auto value = compile(f, {.target = target});
    const auto slope = compile(grad<0>(f), {.target = target});
    for (const double x : {3.0, -3.0, 0.0})
      for (const double y : {0.0, -0.0, HUGE_VAL, -HUGE_VAL, 1e-320}) {
        CHECK(value(x, y) == std::copysign(x, y));
        CHECK(std::signbit(value(x, y)) == std::signbit(y));
        CHECK(slope(x, y) == (x == 0 ? 0 : std::copysign(1.0, x * std::copysign(1.0, y))));
      }
  }
  const auto all = compile([](Rep<Array<double>> a, Rep<Array<double>> b) { return copysign(a, b); });
  const std::vector<double> signs{0.0, -0.0, -1.0, 2.0, -0.0, -0.0, 0.0, 5.0, -7.0}, sizes(signs.size(), 4.0);
  const std::vector<double> got = all(sizes, signs);
  for (std::size_t i = 0; i < signs.size(); ++i) CHECK(got[i] == std::copysign(4.0, signs[i]));
}

TEST_CASE("literals, mixed operands and compound assignment", "[operations]") {
  check_all(
      {.order = 3}, "literals",
      [](D x) {
        D t = 2 * x + x * 3.0f - 1;
        t += x / 4;
        t *= 2.0 - x;
        t -= 1.0 / (x + 3);
        t /= +x;
        return pow(t, 2) + atan2(1.0, x) + max(x, 0.5) + min(4, x) + fma(x, 2.0, x);
      },
      1.7);
}

TEST_CASE("elementary functions", "[operations]") {
  const std::vector<std::array<double, 1>> all{{0.3}, {-1.2}, {2.0}}, positive{{0.4}, {1.0}, {7.5}},
      unit{{0.1}, {-0.6}};
  check_analytic_operation<1>("sqrt", [](auto x) { return sqrt(x); }, positive, {{0.001}});
  check_analytic_operation<1>("exp", [](auto x) { return exp(x); }, all, {{-20.0}});
  check_analytic_operation<1>("log", [](auto x) { return log(x); }, positive, {{0.001}});
  check_operation<1>("exp2", [](auto x) { return exp2(x); }, all, {{-20.0}});
  check_operation<1>("log2", [](auto x) { return log2(x); }, positive, {{0.001}});
  check_operation<1>("log10", [](auto x) { return log10(x); }, positive, {{0.001}});
  check_operation<1>("cbrt", [](auto x) { return cbrt(x); }, all, {{0.01}, {-0.01}});
  check_analytic_operation<1>("asinh", [](auto x) { return asinh(x); }, all, {{0.0}, {100.0}});
  check_analytic_operation<1>("acosh", [](auto x) { return acosh(x); }, {{1.4}, {2.0}, {7.5}}, {{1.01}});
  check_analytic_operation<1>("atanh", [](auto x) { return atanh(x); }, unit, {{0.0}, {0.999}, {-0.999}});
  check_operation<1>("log1p", [](auto x) { return log1p(x); }, {{0.4}, {-0.5}, {3.0}}, {{1e-9}, {-0.999}});
  check_operation<1>("expm1", [](auto x) { return expm1(x); }, all, {{1e-9}});
  check_analytic_operation<1>("sin", [](auto x) { return sin(x); }, all, {{0.0}});
  check_analytic_operation<1>("cos", [](auto x) { return cos(x); }, all, {{0.0}});
  check_analytic_operation<1>("tan", [](auto x) { return tan(x); }, all, {{1.56}});
  check_analytic_operation<1>("asin", [](auto x) { return asin(x); }, unit, {{0.0}, {0.999}, {-0.999}});
  check_analytic_operation<1>("acos", [](auto x) { return acos(x); }, unit, {{0.0}, {0.999}, {-0.999}});
  check_analytic_operation<1>("atan", [](auto x) { return atan(x); }, all, {{0.0}, {100.0}});
  check_analytic_operation<1>("sinh", [](auto x) { return sinh(x); }, all, {{0.0}});
  check_analytic_operation<1>("cosh", [](auto x) { return cosh(x); }, all, {{0.0}});
  check_analytic_operation<1>("tanh", [](auto x) { return tanh(x); }, all, {{0.0}, {12.0}});
  check_operation<1>("erf", [](auto x) { return erf(x); }, all, {{0.0}, {4.0}});
  check_operation<1>("erfc", [](auto x) { return erfc(x); }, all, {{0.0}, {4.0}});
  check_operation<2>("atan2", [](auto x, auto y) { return atan2(x, y); },
                     {{1.0, 2.0}, {1.0, -2.0}, {-1.0, -2.0}, {-0.5, 0.3}, {1.0, 0.0}});
}

TEST_CASE("functions composed of others", "[operations]") {
  const std::vector<std::array<double, 1>> all{{0.3}, {-1.2}, {2.0}};
  check_operation<1>("relu", [](auto x) { return relu(x) * x; }, {{1.5}, {-1.5}}, {{0.001}, {-0.001}});
  check_operation<1>("sigmoid", [](auto x) { return sigmoid(x) * x; }, all, {{0.0}, {-30.0}, {30.0}});
  check_operation<1>("softplus", [](auto x) { return softplus(x) * x; }, all, {{0.0}, {-30.0}, {30.0}});
  // Slopes that are 0 at kinks.
  check_operation<1>("side", [](auto x) { return operation<std::decay_t<decltype(x)>>(ir::Opcode::side_, x) * x * x; },
                     {{1.5}, {-0.7}});
  check_operation<2>("over", [](auto x, auto y) { return operation<std::decay_t<decltype(x)>>(ir::Opcode::over_, x, y) * x; },
                     {{1.5, 0.7}, {-0.4, 2.0}});
  check_operation<1>("root", [](auto x) { return operation<std::decay_t<decltype(x)>>(ir::Opcode::root_, x) * x; },
                     {{1.5}, {0.3}});
  check_operation<1>("with_value",
                     [](auto x) {
                       const auto square = x * x;
                       return operation<std::decay_t<decltype(x)>>(ir::Opcode::with_value_, square, square) * x;
                     },
                     all);
}

TEST_CASE("powers", "[operations]") {
  check_analytic_operation<2>("pow", [](auto x, auto y) { return pow(x, y); },
                              {{1.3, 0.7}, {2.0, -1.5}, {0.8, 3.0}}, {{0.01, 1.5}, {0.01, 4.0}});
  for (double y : {3.0, 2.0, 1.0, -2.0})
    check_all(
        {.order = 3}, "pow with a constant exponent", [y](D x) { return pow(x, y); }, -1.4);
  check_all(
      {.order = 3}, "pow with a constant base", [](D y) { return pow(1.7, y); }, 0.0);
}

TEST_CASE("all second derivatives of pow(x, y) at y = 0", "[operations]") {
  check_all(
      {.order = 2}, "pow", [](D x, D y) { return pow(x, y); }, 1.6, 0.0);
}

TEST_CASE("lgamma and polygamma", "[operations]") {
  exercises({"polygamma"});
  check_operation<1>("lgamma", [](auto x) { return lgamma(x); }, {{0.5}, {1.0}, {2.5}, {12.0}},
                     {{0.05}, {-0.5}, {-1.3}});
  // digamma(1) = -euler, trigamma(1) = pi^2 / 6, tetragamma(1) = -2 zeta(3)
  const std::function<D(D)> f = [](D x) { return lgamma(x); };
  for (int opt : {0, 3}) {
    const CompileOptions c{.target = Target::c, .opt = opt};
    CHECK(compile(grad(f), c)(1.0) == Approx(-0.57721566490153286).epsilon(1e-13));
    CHECK(compile(grad(grad(f)), c)(1.0) == Approx(1.6449340668482264).epsilon(1e-13));
    CHECK(compile(grad(grad(grad(f))), c)(1.0) == Approx(-2.4041138063191886).epsilon(1e-13));
  }
}

TEST_CASE("choice between numbers", "[operations]") {
  exercises({"select", "lt", "le", "eq", "ne", "lnot", "land", "lor"});
  check_points<double, 2>({.order = 3}, "select",
                          [](D x, D y) {
                            return select(x < y, x * x * y, y * y) + select(!(x <= y), x * y, sin(x)) +
                                   select(x == y, x, x * x * x) + select(x != y, y * y * x, y);
                          },
                          {{1.0, 2.0}, {2.0, 1.0}, {-0.5, 0.25}});
  check_all(
      {.order = 3}, "logic",
      [](D x) {
        const auto both = operation<Rep<bool>>(ir::Opcode::land_, x > 0.0, x < 2.0);
        const auto either = operation<Rep<bool>>(ir::Opcode::lor_, x<0.0, x> 1.0);
        return select(both, x * x, sin(x)) * select(either, x, x * x);
      },
      1.5);
  const std::vector<std::pair<double, double>> pairs{{1.0, 2.0},          {2.0, 1.0},          {1.0, 1.0},
                                                     {not_a_number, 1.0}, {1.0, not_a_number}, {inf, inf}};
  for (const auto& [x, y] : pairs) {
    check_value<bool>(
        "lt", [](D a, D b) { return a < b; }, x < y, x, y);
    check_value<bool>(
        "le", [](D a, D b) { return a <= b; }, x <= y, x, y);
    check_value<bool>(
        "gt", [](D a, D b) { return a > b; }, x > y, x, y);
    check_value<bool>(
        "ge", [](D a, D b) { return a >= b; }, x >= y, x, y);
    check_value<bool>(
        "eq", [](D a, D b) { return a == b; }, x == y, x, y);
    check_value<bool>(
        "ne", [](D a, D b) { return a != b; }, x != y, x, y);
  }
  using B = Rep<bool>;
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      check_value<bool>(
          "land", [](B x, B y) { return operation<B>(ir::Opcode::land_, x, y); }, a && b, a, b);
      check_value<bool>(
          "lor", [](B x, B y) { return operation<B>(ir::Opcode::lor_, x, y); }, a || b, a, b);
      check_value<bool>(
          "AND", [](B x, B y) { return AND(x, [&] { return y; }); }, a && b, a, b);
      check_value<bool>(
          "OR", [](B x, B y) { return OR(x, [&] { return y; }); }, a || b, a, b);
      check_value<bool>(
          "==", [](B x, B y) { return x == y; }, a == b, a, b);
      check_value<bool>(
          "lnot", [](B x, B) { return !x; }, !a, a, b);
    }
}

TEST_CASE("integers", "[operations]") {
  exercises({"rem", "imin", "imax", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right"});
  const auto both = [](auto zero) {
    using T = decltype(zero);
    using N = Rep<T>;
    const T pairs[][2] = {{7, 3}, {-7, 3}, {7, -3}, {-7, -3}, {0, 5}};
    for (const auto& [x, y] : pairs) {
      check_value<T>(
          "div", [](N a, N b) { return a / b; }, static_cast<T>(x / y), x, y);
      check_value<T>(
          "rem", [](N a, N b) { return a % b; }, static_cast<T>(x % y), x, y);
      check_value<T>(
          "bits", [](N a, N b) { return ((a & b) ^ (a | 9)) - ~b; }, static_cast<T>(((x & y) ^ (x | 9)) - ~y), x, y);
      check_value<T>(
          "shifts", [](N a, N b) { return (a << 2) + (a >> 1) + (3 << (b & 7)) + (b >> a); },
          static_cast<T>(x * 4 + (x >> 1) + (T{3} << (y & 7)) + (y >> (x & (sizeof(T) * 8 - 1)))), x, y);
      check_value<T>(
          "imin", [](N a, N b) { return min(a, b); }, std::min(x, y), x, y);
      check_value<T>(
          "imax", [](N a, N b) { return max(a, b); }, std::max(x, y), x, y);
      check_value<T>(
          "polynomial", [](N a, N b) { return -a * b + a - 2 * b; }, static_cast<T>(-x * y + x - 2 * y), x,
          y);
    }
  };
  both(std::int64_t{0});
  both(std::int32_t{0});
  const std::function<I(I, I)> quotient = [](I a, I b) { return a / b; },
                               rest = [](I a, I b) { return a % b; };
  for (const auto& f : {quotient, rest}) {
    CHECK_THROWS_AS(eager(f)(1, 0), Error);
    for (int opt : {0, 3}) CHECK_THROWS_AS(compile(f, {.target = Target::c, .opt = opt})(1, 0), Error);
    CHECK_THROWS_AS(compile(f, {.target = Target::cpp})(1, 0), Error);
  }
}

TEST_CASE("conversions", "[operations]") {
  exercises({"cast", "cast_like"});
  check_all(
      {.order = 3, .step = 0.05, .tolerance = 1e-5, .difference_tolerance = 1e-3}, "double to float and back",
      [](D x) { return cast<double>(cast<float>(x * x) * 1.5f) * x; }, 1.25);
  check_all(
      {.order = 3}, "an integer part", [](D x) { return cast<double>(cast<std::int64_t>(x)) * x * x; }, 2.5);
  check_value<std::int64_t>(
      "truncation", [](D x) { return cast<std::int64_t>(x); }, std::int64_t{-2}, -2.7);
  check_value<std::int32_t>(
      "truncation", [](D x) { return cast<std::int32_t>(x); }, 2, 2.7);
  check_value<double>(
      "from an integer", [](I n) { return cast<double>(n) / 2.0; }, 3.5, std::int64_t{7});
  check_value<double>(
      "from a bool", [](Rep<bool> b) { return cast<double>(b) + 1.0; }, 2.0, true);
  check_value<float>(
      "to float", [](D x) { return cast<float>(x); }, 0.1f, 0.1);
  check_value<std::int32_t>(
      "narrowing", [](I n) { return cast<std::int32_t>(n); }, -5, std::int64_t{-5});
}

TEST_CASE("stop_gradient", "[operations]") {
  exercises({"stop_gradient"});
  check_corner<1>("a factor stopped", [](D x) { return stop_gradient(x * x) * x; }, {3.0}, 27.0, {9.0});
  check_corner<1>("everything stopped", [](D x) { return stop_gradient(sin(x) - sin(x)); }, {3.0}, 0.0,
                  {0.0});
  const std::function<D(D)> f = [](D x) { return stop_gradient(x) * x * x; };
  for (int opt : {0, 3}) CHECK(compile(grad(grad(f)), {.target = Target::c, .opt = opt})(3.0) == 6.0);
  CHECK(eager(grad(grad(f)))(3.0) == 6.0);
}

// ---- corners: the conventions of ir/ops.inc ----

TEST_CASE("corner conventions", "[operations]") {
  check_corner<1>("abs at 0", [](D x) { return abs(x); }, {0.0}, 0.0, {0.0});
  check_corner<1>("abs at -0", [](D x) { return abs(x); }, {-0.0}, 0.0, {0.0});
  check_corner<1>("sign at 0", [](D x) { return sign(x); }, {0.0}, 0.0, {0.0});
  check_corner<1>("sign of NaN", [](D x) { return sign(x); }, {not_a_number}, 0.0, {0.0});
  check_corner<2>("tie of min", [](D x, D y) { return min(x, y); }, {1.0, 1.0}, 1.0, {0.5, 0.5});
  check_corner<2>("tie of max", [](D x, D y) { return max(x, y); }, {1.0, 1.0}, 1.0, {0.5, 0.5});
  check_corner<1>("tie of max with itself", [](D x) { return max(x, x); }, {2.0}, 2.0, {1.0});
  check_corner<1>("tie of max with a constant", [](D x) { return max(0.0, x); }, {0.0}, 0.0, {0.5});
  check_corner<1>("relu at 0", [](D x) { return relu(x); }, {0.0}, 0.0, {0.0});
  check_corner<1>("sqrt at 0", [](D x) { return sqrt(x); }, {0.0}, 0.0, {inf});
  check_corner<1>("sqrt below 0", [](D x) { return sqrt(x); }, {-1.0}, not_a_number, {not_a_number});
  check_corner<2>("pow(0, 2)", [](D x, D y) { return pow(x, y); }, {0.0, 2.0}, 0.0, {0.0, 0.0});
  check_corner<2>("pow(0, 1)", [](D x, D y) { return pow(x, y); }, {0.0, 1.0}, 0.0, {1.0, 0.0});
  check_corner<2>("pow(0, 0.5)", [](D x, D y) { return pow(x, y); }, {0.0, 0.5}, 0.0, {inf, 0.0});
  check_corner<2>("pow(0, 0)", [](D x, D y) { return pow(x, y); }, {0.0, 0.0}, 1.0, {0.0, 0.0});
  check_corner<2>("pow(1, 0)", [](D x, D y) { return pow(x, y); }, {1.0, 0.0}, 1.0, {0.0, 0.0});
  check_corner<1>("x^0 at 0", [](D x) { return pow(x, 0.0); }, {0.0}, 1.0, {0.0});
  check_corner<1>("x^2 below 0", [](D x) { return pow(x, 2.0); }, {-3.0}, 9.0, {-6.0});
  check_corner<1>("floor at an integer", [](D x) { return floor(x); }, {2.0}, 2.0, {0.0});
  check_corner<1>("an integer cast", [](D x) { return cast<double>(cast<std::int64_t>(x)); }, {-2.5}, -2.0,
                  {0.0});
  check_corner<1>("a bool cast", [](D x) { return cast<double>(x > 1.0); }, {2.5}, 1.0, {0.0});
  check_corner<1>("log at 0", [](D x) { return log(x); }, {0.0}, -inf, {inf});
  check_corner<1>("1 / x at 0", [](D x) { return 1.0 / x; }, {0.0}, inf, {-inf});
  check_corner<1>("asin at 1", [](D x) { return asin(x) - asin(x); }, {0.5}, 0.0, {0.0});
  check_corner<1>("tanh far out", [](D x) { return tanh(x); }, {50.0}, 1.0, {0.0});
  check_corner<1>("lgamma at a pole", [](D x) { return select(lgamma(x) == inf, D(1.0), D(0.0)); }, {0.0},
                  1.0, {0.0});
  check_corner<2>("select takes one", [](D x, D y) { return select(x < y, x, y); }, {1.0, 1.0}, 1.0,
                  {0.0, 1.0});
  check_corner<2>("eq carries nothing", [](D x, D y) { return cast<double>(x == y); }, {1.0, 1.0}, 1.0,
                  {0.0, 0.0});
  // Second derivatives at corners.
  const std::function<D(D)> square = [](D x) { return pow(x, 2.0); }, bend = [](D x) { return abs(x) * x; };
  for (int opt : {0, 3}) {
    CHECK(compile(grad(grad(square)), {.target = Target::c, .opt = opt})(0.0) == 2.0);
    CHECK(std::isnan(compile(grad(grad(bend)), {.target = Target::c, .opt = opt})(0.0)));
  }
  CHECK(eager(grad(grad(square)))(0.0) == 2.0);
  CHECK(std::isnan(eager(grad(grad(bend)))(0.0)));  // -2 and 2 to the sides
}

// ---- tensors ----

TEST_CASE("element access", "[operations]") {
  check_tensor(
      {"get", "add_at"}, [](A a) { return a[0] * a[1] * sin(a[0]) + a[5]; }, six);
  check_tensor(
      {"set"},
      [](A a) {
        const A b = a.set(2, a[0] * a[1]).set(0, 3.0);
        return blend(b) * a[2];
      },
      six);
  check_tensor(
      {"add_at"}, [](A a) { return blend(operation<A>(ir::Opcode::add_at_, a, I(1), a[0] * a[2])); }, six);
  check_tensor(
      {"take", "add_take"},
      [](A a) {
        const M m = matrix(a, 0, 2, 3);
        return blend(m.row(1)) * blend(m.row(0) * m.row(1));
      },
      six);
  check_tensor(
      {"add_take"},
      [](A a) {
        return blend(operation<M>(ir::Opcode::add_take_, matrix(a, 0, 2, 3), I(1),
                                  as_tensor(a.slice(1, 4) * a.slice(0, 3))));
      },
      six);
  check_tensor(
      {"slice", "add_slice"}, [](A a) { return blend(a.slice(1, 4) * a.slice(2, 5)) * a[0]; }, six);
  check_tensor(
      {"slice"}, [](A a) { return blend(matrix(a, 0, 3, 2).slice(1, 3)); }, six);
  check_tensor(
      {"add_slice"},
      [](A a) { return blend(operation<A>(ir::Opcode::add_slice_, a, I(2), a.slice(0, 3) * a.slice(3, 6))); },
      six);
  check_tensor(
      {"get of a matrix"},
      [](A a) {
        const M m = matrix(a, 0, 2, 3);
        return m(0, 1) * m(1, 2) * m.set(1, 1, m(0, 0) * 2.0)(1, 1) * sum(m.set(0, 2, m(1, 0)));
      },
      six);
}

TEST_CASE("a tensor that no memory holds is an error", "[operations]") {
  using I = Rep<std::int64_t>;
  const auto square = [](I n) { return sum(fill(Rep<double>(1.0), n, n)); };
  const auto flat = [](I n) { return sum(fill(Rep<double>(0.0), 0, n, n)); };
  const auto product = [](I n) { return sum(outer(fill(Rep<double>(1.0), n), fill(Rep<double>(1.0), 0))); };
  const auto fails = [](const auto& f, std::int64_t n) {
    CHECK_THROWS_AS(eager(f)(n), Error);
    for (const Target target : {Target::c, Target::cpp})
      CHECK_THROWS_AS(compile(f, {.target = target})(n), Error);
  };
  for (const int bits : {31, 32, 40, 61, 62}) fails(square, std::int64_t{1} << bits);
  fails(flat, std::int64_t{1} << 32);
  fails(flat, -1);
  fails(product, std::int64_t{1} << 60);
  CHECK(eager(flat)(1 << 20) == 0);
  CHECK(compile(flat, {.target = Target::c})(1 << 20) == 0);
}

TEST_CASE("making tensors", "[operations]") {
  check_tensor(
      {"fill"},
      [](A a) {
        return blend(fill(a[0] * a[1], 4) * 0.5) + sum(full(a[2], {2, 2})) * a[0];
      },
      six);
  check_tensor(
      {"zeros_like"}, [](A a) { return blend(zeros_like(a) + a * a); }, six);
  check_tensor(
      {"concat"}, [](A a) { return blend(concat(a.slice(0, 2), a.slice(1, 3) * a[0])); }, six);
  check_tensor(
      {"concat"}, [](A a) { return blend(concat(matrix(a, 0, 1, 2), matrix(a, 1, 2, 2))); }, six);
  check_tensor(
      {"reshape"}, [](A a) { return blend(matrix(a, 0, 3, 2).row(1)) * a[0]; }, six);
  check_tensor(
      {"transpose"},
      [](A a) {
        const M m = matrix(a, 0, 2, 3);
        return blend(transpose(m)) + transpose(m)(2, 0) * sum(transpose(m * m).row(1));
      },
      six);
  check_tensor(
      {"copy"}, [](A a) { return blend(operation<A>(ir::Opcode::copy_, a) * a); }, six);
  check_tensor(
      {"dim"}, [](A a) { return sum(a * cast<double>(a.size())) * a[0]; }, six);
  check_tensor(
      {"tensors of literals"},
      [](A a) {
        return sum(zeros<double>({6}) + as_tensor(a * a)) * sum(full<double>(2.0, {2, 2}) * a[1]);
      },
      six);
}

TEST_CASE("reductions and broadcasts", "[operations]") {
  check_tensor(
      {"sum"}, [](A a) { return sum(a) * sum(a * a) + sum(matrix(a, 0, 2, 3) * 2.0); }, six);
  check_tensor(
      {"broadcast", "reduce_to"}, [](A a) { return blend(a * a[0] + 2.0) * sum(a[1] - a); }, six);
  check_tensor(
      {"broadcast"}, [](A a) { return blend(matrix(a, 0, 2, 3) * as_tensor(a.slice(0, 3))); }, six);
  check_tensor(
      {"reduce_to"},
      [](A a) {
        const M m = matrix(a, 0, 2, 3);
        return blend(operation<M>(ir::Opcode::reduce_to_, m * m, as_tensor(a.slice(0, 3)))) * a[0];
      },
      six);
  check_tensor(
      {"argmax"}, [](A a) { return max(a) * max(a) * a[0] + a[argmax(a * a)] * a[1]; }, six);
  check_tensor(
      {"logsumexp"}, [](A a) { return logsumexp(a * a) * a[0]; }, six);
  const std::function<D(A)> largest = [](A a) { return max(a); };
  const std::vector<double> tie{1.0, 2.0, 2.0}, shared{0.0, 0.5, 0.5};
  CHECK(eager(grad(largest))(tie) == shared);
  for (int opt : {0, 3}) CHECK(compile(grad(largest), {.target = Target::c, .opt = opt})(tie) == shared);
}

TEST_CASE("linear algebra", "[operations]") {
  check_tensor(
      {"dot"}, [](A a) { return dot(a, a * sin(a)) * dot(a.slice(0, 2), a.slice(1, 3)); }, six);
  check_tensor(
      {"matvec", "add_outer", "vecmat"}, [](A a) { return blend(matmul(matrix(a, 0, 2, 3), a.slice(1, 4))); },
      six);
  check_tensor(
      {"vecmat"}, [](A a) { return blend(matmul(a.slice(1, 3), matrix(a, 0, 2, 3))); }, six);
  check_tensor(
      {"matmul", "add_matmul", "transpose"},
      [](A a) { return blend(matmul(matrix(a, 0, 2, 3), matrix(a, 4, 3, 2))); }, ten);
  check_tensor(
      {"outer"}, [](A a) { return blend(outer(a.slice(0, 2), a.slice(1, 4))); }, six);
  check_tensor(
      {"add_outer"},
      [](A a) {
        return blend(operation<M>(ir::Opcode::add_outer_, matrix(a, 0, 2, 3), a.slice(1, 3), a.slice(2, 5)));
      },
      six);
  check_tensor(
      {"add_matmul"},
      [](A a) {
        return blend(operation<M>(ir::Opcode::add_matmul_, matrix(a, 0, 2, 2), matrix(a, 1, 2, 3),
                                  matrix(a, 4, 3, 2)));
      },
      ten);
}

TEST_CASE("element by element", "[operations]") {
  check_tensor(
      {"functions of an array"},
      [](A a) {
        return blend(exp(a) / (2.0 + cos(a)) - tanh(a) * pow(a * a + 0.1, 1.5) + abs(a) +
                     atan2(a, 2.0 + a * a)) +
               sum(-a * erf(a));
      },
      six, false);
  check_tensor(
      {"more functions of an array"},
      [](A a) {
        return sum(sqrt(a * a + 1.0) * log1p(a * a) + expm1(a) * sinh(a) - lgamma(a * a + 0.5) / cosh(a)) *
               a[0];
      },
      six, false);
  check_tensor(
      {"one function of an array"}, [](A a) { return sum(exp(a) * a); }, six);
}

TEST_CASE("trees are data", "[operations]") {
  exercises({"tree_empty", "tree_left", "tree_right", "tree_value"});
  using T = Tree<std::tuple<double, std::int64_t>>;
  const T tree({1.5, 2}, T({0.5, 1}), T({2.5, 3}, T(), T({0.25, 4})));
  check_with(
      {.order = 3}, "a tree's fields",
      [](D x, Rep<T> t) {
        const auto [v, n] = t.value();
        return IF(
                   t.left().is_leaf(), [&] { return x * x * v; }, [&] { return x; }) *
               cast<double>(n) *
               IF(
                   t.right().left().empty(), [&] { return sin(x); }, [&] { return x; });
      },
      0.7, tree);
  const std::function<D(Rep<T>)> below = [](Rep<T> t) { return std::get<0>(t.left().left().value()); };
  CHECK_THROWS_AS(eager(below)(tree), Error);
}

// ---- completeness ----

TEST_CASE("no operation of the table was forgotten", "[operations]") {
  // Tests run in the order of the file: those above have said what they exercise. Control, cells and tapes
  // have tests of their own.
  if (exercised().size() < 10) return;  // a filtered run
  std::string forgotten;
  for (int i = 0; i < static_cast<int>(ir::Opcode::count_); ++i) {
    const ir::OpInfo& row = ir::info(static_cast<ir::Opcode>(i));
    // Vectors and products of parts are made by passes, and prints write: all have tests of their own.
    const bool core = row.formulas.empty() || row.name.starts_with("lane_") || row.name == "gemm" ||
                      row.name == "print_adjoint";
    if (!core && !exercised().contains(std::string(row.name))) forgotten += " " + std::string(row.name);
  }
  INFO("forgotten:" << forgotten);
  CHECK(forgotten.empty());
}

TEST_CASE("a function whose first call raised has no code") {
  const auto f = compile(sig<double(Tensor<double>)>([](M x) -> D {
    if (x.rank() == 1) throw Error("no vector");
    return sum(x);
  }));
  const std::vector<double> v{1, 2};
  CHECK_THROWS_WITH(f(TensorView<const double>(v.data(), {2})), Catch::Contains("no vector"));
  CHECK_THROWS_WITH(f.source("c"), Catch::Contains("no declared rank"));
  CHECK(f(TensorView<const double>(v.data(), {1, 2})) == 3);
}

TEST_CASE("a tensor of undeclared rank beside one whose rank is declared; largest and smallest of tensors",
          "[operations]") {
  using Matrix = Rep<Tensor<double, dyn, dyn>>;
  using Vector = Rep<Tensor<double, dyn>>;
  const auto f = [](Matrix m, Vector v, Rep<Array<double>> a) {
    const Rep<Tensor<double>> u = matmul(m, v);
    Matrix p = m + outer(u, v);
    p += transpose(transpose(outer(u, v) - m));
    p = p * outer(u, v) / (1.0 + m * m);
    const Rep<Array<double>> b = max(a, 0.3) + min(a, sum(v)) + max(0.1, a);
    return sum(max(p, 0.0)) + sum(b) + select(sum(v) < 1.0, 2.0, sum(v)) + sum(u - v);
  };
  const std::vector<double> m{1, -2, 3, 4}, v{0.5, -1}, a{0.2, 0.4};
  const auto run = [&](auto&& g) {
    return g(TensorView<const double>(m.data(), {2, 2}), TensorView<const double>(v.data(), {2}), a);
  };
  // u = (2.5, -2.5); p = outer(u, v) * 2 * outer(u, v) / (1 + m * m).
  const double p = 2 * (1.5625 / 2 + 6.25 / 5 + 1.5625 / 10 + 6.25 / 17);
  CHECK(run(eager(f)) == Approx(p + 0.3 + 0.4 - 0.5 - 0.5 + 0.2 + 0.4 + 2 + 0.5));
  CHECK(run(compile(f, {.target = Target::c})) == Approx(run(eager(f))));
  const auto [dm, dv, da] = run(eager(grad(f)));
  const auto [em, ev, ea] = run(compile(grad(f), {.target = Target::c}));
  for (std::size_t i = 0; i < 4; ++i) CHECK(dm.data[i] == Approx(em.data[i]));
  CHECK(da == std::vector<double>{0 + 0 + 1, 1 + 0 + 1});
  CHECK(da == ea);
}
