// deforestation: which arrays of an iteration become rows of the result, that nothing changes, and what must stay.
#include "lantern/compiler/passes/array/deforestation.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "../occurrences.hpp"
#include "around_pass.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

using lantern::test::count;

/// A recurrence: its iterations follow one another, so that lanes are only to be had across directions.
A recurrence(A x) {
  auto [y, h] = FOR(0, x.size(), std::tuple(fill(D(0.0), x.size()), D(0.5)), [&](I i, A s, D before) {
    D now = tanh(0.9 * before * x[i] + x[i]);
    return std::tuple(s.set(i, now), now);
  });
  return y;
}
D last(A x) {
  return FOR(0, x.size(), D(0.5), [&](I i, D h) { return tanh(0.9 * h * x[i] + x[i]); });
}
/// Results of another length than the argument, added to.
A sums(A x, I m) {
  return FOR(0, x.size(), fill(D(0.0), m),
             [&](I i, A s) { return s.set(i % m, s[i % m] + sin(x[i]) * x[0]); });
}

/// What the iteration before had of all of it is another piece of state.
A kept(A x) {
  const auto none = [&] { return fill(D(0.0), x.size()); };
  auto [y, before] = FOR(0, x.size(), std::tuple(none(), none()), [&](I i, A now, A earlier) {
    return std::tuple(now.set(i, sin(x[i]) + 0.5 * earlier[max(i - 2, 0)]), now);
  });
  return y;
}

std::vector<double> numbers(std::size_t n) {
  std::vector<double> x;
  for (std::size_t i = 0; i < n; ++i) x.push_back(0.3 + 0.4 * std::sin(1.3 * static_cast<double>(i)));
  return x;
}

/// Compiled in each way once, and run for arrays of all sizes about the lanes.
template <class F, class... More>
void same_everywhere(F f, std::size_t smallest, const More&... more) {
  for (const CompileOptions& way :
       {CompileOptions{.target = Target::cpp}, CompileOptions{.target = Target::cpp, .lanes = 2},
        CompileOptions{.target = Target::cpp, .lanes = 4}, CompileOptions{.target = Target::cpp, .lanes = 8},
        CompileOptions{.target = Target::cpp, .threads = 2}, CompileOptions{.target = Target::c},
        CompileOptions{.target = Target::c, .opt = 0},
        CompileOptions{.target = Target::cpp, .disabled_passes = {"deforestation"}}}) {
    CAPTURE(static_cast<int>(way.target), way.opt, way.lanes, way.threads, way.disabled_passes.size());
    const auto compiled = compile(f, way);
    for (const std::size_t n : {0U, 1U, 2U, 3U, 5U, 8U, 9U, 16U, 17U, 33U}) {
      if (n < smallest) continue;
      CAPTURE(n);
      const std::vector<double> x = numbers(n);
      const auto expected = eager(f)(x, more...);
      const auto got = compiled(x, more...);
      REQUIRE(got.shape == expected.shape);
      for (std::size_t i = 0; i < got.data.size(); ++i) {
        CAPTURE(i);
        CHECK(got.data[i] == Approx(expected.data[i]).margin(1e-13));
      }
    }
  }
}

std::string after(const std::string& text) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  passes::deforestation(*module);
  ir::verify(*module);
  return ir::print(*module);
}

/// for k < n: row = `first`; for j < m: `inner`; J = add_take J, `place`, row
std::string matrix(const std::string& start, const std::string& first, const std::string& inner,
                   const std::string& place, const std::string& rest = "") {
  return "entry @f\nfun @f(%x: f64[?], %v: f64, %n: i64, %m: i64) -> f64[?,?] {\n  %zero = constant 0 : i64\n"
         "  %one = constant 1 : i64\n  %nothing = constant 0 : f64\n  %J = fill " +
         start +
         ", %n, %m : f64[?,?]\n"
         "  %k, %all = loop %zero, %J : i64, f64[?,?] while (%k1: i64, %J1: f64[?,?]) {\n    %c = lt %k1, %n "
         ": bool\n"
         "    yield %c\n  } do (%k2: i64, %J2: f64[?,?]) {\n    %r = fill " +
         first +
         ", %m : f64[?]\n"
         "    %j, %row = loop %zero, %r : i64, f64[?] while (%j1: i64, %r1: f64[?]) {\n      %d = lt %j1, %m "
         ": bool\n"
         "      yield %d\n    } do (%j2: i64, %r2: f64[?]) {\n" +
         inner +
         "      %j3 = add %j2, %one : i64\n"
         "      yield %j3, %r3\n    }\n" +
         rest + "    %J3 = add_take %J2, " + place +
         ", %row : f64[?,?]\n"
         "    %k3 = add %k2, %one : i64\n    yield %k3, %J3\n  }\n  yield %all\n}\n";
}

}  // namespace

TEST_CASE("deforestation: the passes of a Jacobian have no arrays of their own, and run in lanes") {
  const auto text = test::around_pass("deforestation", jacobian<mode::forward>(recurrence));
  CHECK(count(text.first, "add_take") == 1);
  CHECK(count(text.second, "add_take") == 0);
  CHECK(count(text.second, "set %") == count(text.first, "set %") - 1);
  CHECK(test::around_pass("vectorise", jacobian<mode::forward>(recurrence)).second.find("f64x") !=
        std::string::npos);
}

TEST_CASE("deforestation: derivatives are what they were, for all sizes about the lanes") {
  same_everywhere(jacobian<mode::forward>(recurrence), 0);
  same_everywhere(jacobian<mode::reverse>(recurrence), 0);
  same_everywhere(hessian(last), 0);
  same_everywhere(jacobian<mode::forward>(kept), 0);
  same_everywhere(jacobian<mode::reverse>(kept), 0);
  same_everywhere(jacobian<mode::forward>(sums), 1, std::int64_t{3});
  same_everywhere(jacobian<mode::reverse>(sums), 1, std::int64_t{3});
}

TEST_CASE("deforestation: arrays that become rows, and those that do not") {
  const std::string put =
      "      %e = get %x, %j2 : f64\n      %p = mul %e, %v : f64\n      %r3 = set %r2, %j2, %p : f64[?]\n";
  CHECK(count(after(matrix("%nothing", "%nothing", put, "%k2")), "add_take") == 0);
  const std::string add = "      %e = get %x, %j2 : f64\n      %r3 = add_at %r2, %j2, %e : f64[?]\n";
  CHECK(count(after(matrix("%nothing", "%nothing", add, "%k2")), "add_take") == 0);
  const std::string read =
      "      %e = get %r2, %zero : f64\n      %p = add %e, %v : f64\n      %r3 = set %r2, %j2, %p : f64[?]\n";
  CHECK(count(after(matrix("%nothing", "%nothing", read, "%k2")), "add_take") == 0);
  // A matrix, or an array, that is not zero; a row that is another's too; an array that somebody else asks
  // for.
  CHECK(count(after(matrix("%v", "%nothing", put, "%k2")), "add_take") == 1);
  CHECK(count(after(matrix("%nothing", "%v", put, "%k2")), "add_take") == 1);
  CHECK(count(after(matrix("%nothing", "%nothing", put, "%zero")), "add_take") == 1);
  CHECK(count(after(matrix("%nothing", "%nothing", put, "%k2", "    print %row, \"row\"\n")), "add_take") ==
        1);
  const std::string whole = "      %s = sum %r2 : f64\n      %r3 = set %r2, %j2, %s : f64[?]\n";
  CHECK(count(after(matrix("%nothing", "%nothing", whole, "%k2")), "add_take") == 1);
}

TEST_CASE("deforestation: an array with one element replaced is not made to be read") {
  const auto text = [](const std::string& base, const std::string& place, const std::string& use) {
    return "entry @f\nfun @f(%x: f64[?], %v: f64, %n: i64) -> f64 {\n  %zero = constant 0 : i64\n  %one = "
           "constant 1 : i64\n"
           "  %nothing = constant 0 : f64\n  %size = dim[0] %x : i64\n  %base = " +
           base +
           " : f64[?]\n"
           "  %k, %all = loop %zero, %nothing : i64, f64 while (%k1: i64, %a1: f64) {\n    %c = lt %k1, "
           "%size : bool\n"
           "    yield %c\n  } do (%k2: i64, %a2: f64) {\n    %e = set %base, " +
           place + ", %v : f64[?]\n" + use +
           "    %k3 = add %k2, %one : i64\n    yield %k3, %a3\n  }\n  yield %all\n}\n";
  };
  const std::string read =
      "    %g = get %e, %k2 : f64\n    %h = get %e, %zero : f64\n    %p = mul %g, %h : f64\n    %a3 = add "
      "%a2, %p : f64\n";
  CHECK(count(after(text("zeros_like %x", "%k2", read)), "set %") == 0);
  CHECK(count(after(text("fill %v, %size", "%k2", read)), "set %") == 0);
  CHECK(count(after(text("zeros_like %x", "%n", read)), "set %") ==
        1);  // out of range, perhaps: it is to be said
  CHECK(count(after(text("exp %x", "%k2", read)), "set %") == 1);
  const std::string all = "    %g = sum %e : f64\n    %a3 = add %a2, %g : f64\n";
  CHECK(count(after(text("zeros_like %x", "%k2", all)), "set %") == 1);
}
