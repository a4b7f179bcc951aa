// Branches that only choose between numbers at hand: selections, which no processor guesses.
#include <catch2/catch.hpp>

#include "../correctness/agree.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

std::string after_simplify(const std::string& text) {
  const auto module = ir::parse(text);
  passes::simplify(*module);
  ir::verify(*module);
  return ir::print(*module);
}

std::string branch(const std::string& type, const std::string& then, const std::string& otherwise) {
  return "entry @f\n\nfun @f(%c: bool, %x: " + type + ", %y: " + type + ") -> " + type +
         " {\n  %r = branch %c : " + type + " {\n" + then + "  } else {\n" + otherwise +
         "  }\n  yield %r\n}\n";
}

/// Where q lies in the table xs, by halving.
D looked_up(A xs, A ys, D q) {
  const auto [lo, hi] = WHILE(
      std::tuple(I(0), xs.size() - 1), [](I l, I h) { return h - l > 1; },
      [&](I l, I h) {
        const I m = (l + h) / 2;
        return IF(
            xs[m] <= q, [&] { return std::tuple(m, h); }, [&] { return std::tuple(l, m); });
      });
  return ys[lo] + (q - xs[lo]) / (xs[hi] - xs[lo]) * (ys[hi] - ys[lo]);
}

}  // namespace

TEST_CASE("a branch that only chooses is a selection", "[passes]") {
  CHECK(after_simplify(branch("f64", "    yield %x\n", "    yield %y\n")) == R"(entry @f

fun @f(%c: bool, %x: f64, %y: f64) -> f64 {
  %r = select %c, %x, %y : f64
  yield %r
}
)");
  CHECK(after_simplify(branch("i64", "    yield %x\n", "    %1 = constant 3 : i64\n    yield %1\n")) ==
        R"(entry @f

fun @f(%c: bool, %x: i64, %y: i64) -> i64 {
  %1 = constant 3 : i64
  %r = select %c, %x, %1 : i64
  yield %r
}
)");
  // What computes stays where only one side does, and conditions and tensors stay as they are.
  for (const std::string& stays : {branch("f64", "    %1 = sin %x : f64\n    yield %1\n", "    yield %y\n"),
                                   branch("bool", "    yield %x\n", "    yield %y\n"),
                                   branch("f64[?]", "    yield %x\n", "    yield %y\n")})
    CHECK(after_simplify(stays) == stays);
}

TEST_CASE("a condition that another one implies is left out", "[passes]") {
  const auto simplified = [](const std::string& condition) {
    return after_simplify("entry @f\n\nfun @f(%x: f64, %y: f64, %c: bool) -> bool {\n" + condition +
                          "  yield %r\n}\n");
  };
  const std::string equal = "  %1 = eq %x, %y : bool\n", other = "  %2 = ne %x, %y : bool\n",
                    most = "  %3 = le %y, %x : bool\n";
  // x == y or (x != y and x >= y), as the derivative of a maximum asks.
  CHECK(simplified(equal + other + most + "  %4 = land %2, %3 : bool\n  %r = lor %1, %4 : bool\n") ==
        simplified("  %r = le %y, %x : bool\n"));
  CHECK(simplified(equal + other + "  %4 = land %2, %c : bool\n  %r = lor %1, %4 : bool\n") ==
        simplified(equal + "  %r = lor %1, %c : bool\n"));
  CHECK(simplified(equal + other + "  %4 = lor %2, %c : bool\n  %r = land %1, %4 : bool\n") ==
        simplified(equal + "  %r = land %1, %c : bool\n"));
  CHECK(simplified(equal + most + "  %4 = lor %3, %c : bool\n  %r = land %1, %4 : bool\n") ==
        simplified("  %r = eq %x, %y : bool\n"));
  CHECK(simplified("  %1 = lt %x, %y : bool\n  %2 = le %x, %y : bool\n  %r = lor %1, %2 : bool\n") ==
        simplified("  %r = le %x, %y : bool\n"));
  CHECK(simplified("  %1 = lt %x, %y : bool\n  %2 = ne %y, %x : bool\n  %r = land %1, %2 : bool\n") ==
        simplified("  %r = lt %x, %y : bool\n"));
  // A part that both sides have is asked once: as where a maximum is taken, of what something flows to.
  CHECK(simplified(equal + other + most + "  %4 = land %1, %c : bool\n  %5 = land %3, %c : bool\n  %6 = land %2, %5 : bool\n" +
                   "  %r = lor %4, %6 : bool\n") == simplified(most + "  %r = land %3, %c : bool\n"));
  CHECK(simplified(equal + other + "  %4 = lor %1, %c : bool\n  %5 = lor %c, %2 : bool\n  %r = land %4, %5 : bool\n") ==
        simplified("  %r = lor %c, %c : bool\n"));
  // Where conditions are tensors, a number does not take their place.
  CHECK(after_simplify("entry @f\n\nfun @f(%x: f64[?], %y: f64[?]) -> bool[?] {\n  %1 = eq %x, %y : bool[?]\n  %2 = ne %x, %y : bool[?]\n"
                       "  %r = lor %1, %2 : bool[?]\n  yield %r\n}\n")
            .find("lor") != std::string::npos);
  // v != 0 or 0 < copysign(1, v), which -0 alone does not fulfil: v + 0 does, and a choice of it and -0 asks its condition.
  const std::string zeros = "  %z = constant 0 : f64\n  %m = constant -0 : f64\n  %one = constant 1 : f64\n  %s = add %x, %z : f64\n";
  const auto not_minus_zero = [](const std::string& v) {
    return "  %a = copysign %one, " + v + " : f64\n  %b = ne " + v + ", %z : bool\n  %d = lt %z, %a : bool\n  %r = lor %b, %d : bool\n";
  };
  CHECK(simplified(zeros + not_minus_zero("%s")) == simplified("  %r = constant true : bool\n"));
  CHECK(simplified(zeros + "  %v = select %c, %s, %m : f64\n" + not_minus_zero("%v")).find("  yield %c\n") != std::string::npos);
  CHECK(simplified(zeros + "  %v = select %c, %m, %s : f64\n" + not_minus_zero("%v")).find("lnot %c") != std::string::npos);
  CHECK(simplified(zeros + "  %v = select %c, %x, %m : f64\n" + not_minus_zero("%v")).find("copysign") != std::string::npos);
  CHECK(simplified(zeros + not_minus_zero("%x")).find("copysign") != std::string::npos);
  // A choice of v + 0 where v is not -0, and of -0 where it is, is v.
  const auto marked = [&](const std::string& sum) {
    return simplified(zeros + "  %a = copysign %one, %x : f64\n  %b = ne %x, %z : bool\n  %d = lt %z, %a : bool\n" +
                      "  %k = lor %b, %d : bool\n" + sum + "  %v = select %k, %t, %m : f64\n  %r = lt %v, %y : bool\n");
  };
  CHECK(marked("  %t = add %x, %z : f64\n") == simplified("  %r = lt %x, %y : bool\n"));
  CHECK(marked("  %t = add %y, %z : f64\n").find("select") != std::string::npos);
  CHECK(marked("  %t = add %x, %one : f64\n").find("select") != std::string::npos);
  // Of NaN neither holds: x < y or y <= x is not always true, and not (x < y) is not y <= x.
  for (const std::string& stays :
       {std::string("  %1 = lt %x, %y : bool\n  %2 = le %y, %x : bool\n  %r = lor %1, %2 : bool\n"),
        std::string("  %1 = lt %x, %y : bool\n  %2 = lnot %1 : bool\n  %3 = le %y, %x : bool\n  %r = land "
                    "%2, %3 : bool\n")}) {
    const std::string text = simplified(stays);
    CHECK(text.find("lt") != std::string::npos);
    CHECK(text.find("le") != std::string::npos);
  }
}

TEST_CASE("a table look-up by halving does not branch in its loop", "[passes]") {
  for (const Target target : {Target::c, Target::cpp}) {
    const auto f = compile(looked_up, {.target = target, .opt = 3});
    CHECK(f.source("ir").find("branch") == std::string::npos);
    const std::vector<double> xs{0, 1, 2, 4, 8, 16, 32}, ys{5, 4, 3, 2, 1, 0, -1};
    for (const double q : {0.0, 0.5, 1.0, 3.9, 4.0, 31.0, 32.0})
      CHECK(f(xs, ys, q) == eager(looked_up)(xs, ys, q));
    const auto df = compile(grad<0, 1, 2>(looked_up), {.target = target, .opt = 3});
    const auto [dxs, dys, dq] = df(xs, ys, 3.0);
    CHECK(dxs == std::vector<double>{0, 0, 0.25, 0.25, 0, 0, 0});
    CHECK(dys == std::vector<double>{0, 0, 0.5, 0.5, 0, 0, 0});
    CHECK(dq == -0.5);
  }
}
