// tape_coalescing: which tapes become one, and that they give back what was put on them.
#include "lantern/compiler/passes/memory/tape_coalescing.hpp"

#include <catch2/catch.hpp>

#include "../correctness/agree.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

std::string after_records(const std::string& text) {
  const auto module = ir::parse(text);
  passes::tape_coalescing(*module);
  ir::verify(*module);
  return ir::print(*module);
}

}  // namespace

TEST_CASE("tape_coalescing: tapes that are worked on in step become one", "[passes]") {
  CHECK(after_records(R"(entry @f

fun @f(%1: f64, %2: f64) -> f64 {
  push[0] %1
  push[1] %2
  %3 = mul %1, %2 : f64
  push[0] %2
  push[1] %3
  %4 = pop[1] : f64
  %5 = pop[0] : f64
  %6 = mul %4, %5 : f64
  %7 = pop[1] : f64
  %8 = pop[0] : f64
  %9 = sub %7, %8 : f64
  %10 = add %6, %9 : f64
  yield %10
}
)") == R"(entry @f

fun @f(%1: f64, %2: f64) -> f64 {
  push[0] %1, %2
  %3 = mul %1, %2 : f64
  push[0] %2, %3
  %4, %5 = pop[0] : f64, f64
  %6 = mul %5, %4 : f64
  %7, %8 = pop[0] : f64, f64
  %9 = sub %8, %7 : f64
  %10 = add %6, %9 : f64
  yield %10
}
)");
}

TEST_CASE("tape_coalescing: other tapes stay", "[passes]") {
  const auto stays = [](const std::string& body) {
    const std::string text = "entry @f\n\nfun @f(%1: f64, %2: i64) -> f64 {\n" + body + "}\n";
    CHECK(after_records(text) == ir::print(*ir::parse(text)));
  };
  // Of different types.
  stays("  push[0] %1\n  push[1] %2\n  %3 = pop[1] : i64\n  %4 = pop[0] : f64\n  yield %4\n");
  // Popped in different places.
  stays(
      "  push[0] %1\n  push[1] %1\n  %3 = pop[1] : f64\n  %4 = mul %3, %3 : f64\n  %5 = pop[0] : f64\n  %6 = "
      "mul "
      "%4, %5 : f64\n  yield %6\n");
  // One is pushed once more.
  stays(
      "  push[0] %1\n  push[1] %1\n  %3 = mul %1, %1 : f64\n  push[1] %3\n  %4 = pop[1] : f64\n  %5 = mul "
      "%4, %4 : "
      "f64\n  %6 = pop[1] : f64\n  %7 = pop[0] : f64\n  yield %7\n");
}

TEST_CASE("tape_coalescing: gradients of loops that save several values of several types", "[passes]") {
  using D = Rep<double>;
  using I = Rep<std::int64_t>;
  const auto all = [](D x, I n) {
    return FOR(0, n, std::tuple(x, D(1.0)), [&](I i, D s, D p) {
      const D a = sin(s) * p, b = exp(-a * a) + s,
              c = IF(
                  b > 0.5, [&] { return b * b; }, [&] { return a / b; });
      return std::tuple(sin(0.5 * (c + a * p)), 0.5 * tanh(b * p) + 0.1 * cast<double>(i % 3) * sin(s));
    });
  };
  const auto f = [all](D x, I n) {
    const auto [s, p] = all(x, n);
    return s * p;
  };
  const auto with = compile(grad<0>(f), {.target = Target::c}),
             without = compile(grad<0>(f), {.target = Target::c, .disabled_passes = {"tape_coalescing"}});
  CHECK(with.source("c").find("+= ") != std::string::npos);
  for (const std::int64_t n : {0, 1, 2, 7, 60}) {
    INFO(n);
    CHECK(std::isfinite(with(0.3, n)));
    CHECK(with(0.3, n) == without(0.3, n));
    CHECK(compile(grad<0>(f), {.target = Target::cpp, .opt = 3})(0.3, n) == Approx(without(0.3, n)));
    CHECK(eager(grad<0>(f))(0.3, n) == Approx(without(0.3, n)));
  }
}

// What is saved may be the result of a call that saves on the same tape.
TEST_CASE("tape_coalescing: recursion in the backward part", "[passes]") {
  using D = Rep<double>;
  using I = Rep<std::int64_t>;
  const auto f = [](D x) {
    const auto walk = FUN<double(double, std::int64_t)>("walk", [x](auto self, D b, I n) {
      return IF(
          n == 0, [&] { return b * x; }, [&] { return sin(self(b, n - 1)) + self(b * 0.5, n - 1) * b; });
    });
    return walk(x, 3);
  };
  const auto second = grad(grad<mode::global_tape>(f));
  const double expected = eager(grad(grad(f)))(0.7);
  for (const int opt : {0, 1, 3})
    CHECK(compile(second, {.target = Target::c, .opt = opt})(0.7) == Approx(expected).epsilon(1e-12));
}

// Records of vectors are fetched from memory before they are popped, unless they are short.
TEST_CASE("tape_coalescing: long ones are asked for early", "[passes]") {
  using Values = Rep<Array<double>>;
  using I = Rep<std::int64_t>;
  const auto steps = [](bool many) {
    return [=](Values x, I iterations) {
      const Values last = FOR(0, iterations, x, [&](I, Values s) {
        return FOR(0, x.size(), s, [&](I i, Values a) {
          const Rep<double> once = sin(a[i]);
          return a.set(i, many ? exp(once) * tanh(a[i]) : once);
        });
      });
      return FOR(0, x.size(), 0.0, [&](I i, Rep<double> sum) { return sum + last[i]; });
    };
  };
  const auto f = steps(true);
  const auto longer = compile(grad<0>(f), {.target = Target::cpp});
  const auto shorter = compile(grad<0>(steps(false)), {.target = Target::cpp});
  CHECK(longer.source("cpp").find("lt_fetch_below(") != std::string::npos);
  CHECK(shorter.source("cpp").find("lt_fetch_below(") == std::string::npos);
  const auto plain = compile(grad<0>(f), {.target = Target::c});
  std::vector<double> x(1003);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<double>(i));
  const auto got = longer(x, 40), expected = plain(x, 40);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(got[i] == Approx(expected[i]).epsilon(1e-10).margin(1e-12));
}
