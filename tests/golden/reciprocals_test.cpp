// reciprocals: which quotients become products, and that gradients stay what they are.
#include "lantern/compiler/passes/schedule/reciprocals.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "../correctness/row_programs.hpp"
#include "../lanes.hpp"
#include "../occurrences.hpp"
#include "around_pass.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

std::string after(const std::string& operations) {
  const auto module =
      ir::parse("entry @f\n\nfun @f(%x: f64, %y: f64, %z: f64, %t: f64[?]) -> f64 {\n" + operations + "}\n");
  ir::verify(*module);
  passes::reciprocals(*module);
  ir::verify(*module);
  const std::string text = ir::print(*module);
  const std::size_t from = text.find("{\n") + 2;
  return text.substr(from, text.rfind("}\n") - from);
}

/// Quotients in two dimensions, whose divisors are the program's own.
D diffused(A u, I n) {
  D s = 0.0;
  FOR(1, n - 1, [&](I i) {
    FOR(1, n - 1, [&](I j) {
      const D e = u[i * n + j + 1] - u[i * n + j], v = u[(i - 1) * n + j] - u[i * n + j];
      s = s + e / (1.0 + e * e) * v / (2.0 - v);
    });
  });
  return s;
}
/// A quotient that the derivative uses otherwise, too.
D shares(A u, I n) {
  return FOR(0, n, D(0.0), [&](I i, D s) {
    const D p = u[i] / (1.0 + u[i] * u[i]);
    return s + p * p * sin(p);
  });
}

}  // namespace

TEST_CASE("reciprocals: a quotient that only its divisor's reciprocal meets", "[passes]") {
  const std::string one = "  %one = constant 1 : f64\n";
  CHECK(after(one +
              "  %q = div %one, %y : f64\n  %r = div %x, %y : f64\n  %s = mul %r, %q : f64\n  yield %s\n") ==
        one + "  %q = div %one, %y : f64\n  %r = mul %x, %q : f64\n  %s = mul %r, %q : f64\n  yield %s\n");
  // The reciprocal comes first then, with its constant.
  CHECK(after("  %r = div %x, %y : f64\n  %m = neg %r : f64\n" + one +
              "  %q = div %one, %y : f64\n  %s = mul %m, %q : f64\n  yield %s\n") ==
        one +
            "  %q = div %one, %y : f64\n  %r = mul %x, %q : f64\n  %m = neg %r : f64\n  %s = mul %m, %q : "
            "f64\n  yield %s\n");
  for (const std::string& stays : {
           // of another divisor; of another number; asked for elsewhere
           one + "  %q = div %one, %z : f64\n  %r = div %x, %y : f64\n  %s = mul %r, %q : f64\n  yield %s\n",
           std::string("  %two = constant 2 : f64\n  %q = div %two, %y : f64\n  %r = div %x, %y : f64\n  %s "
                       "= mul %r, %q "
                       ": f64\n  yield %s\n"),
           one + "  %q = div %one, %y : f64\n  %r = div %x, %y : f64\n  %s = mul %r, %q : f64\n  %a = add "
                 "%s, %r : f64\n  yield %a\n",
           one + "  %q = div %one, %y : f64\n  %r = div %x, %y : f64\n  %a = add %r, %q : f64\n  yield %a\n",
       })
    CHECK(after(stays) == stays);
}

TEST_CASE("reciprocals: gradients", "[passes]") {
  CompileOptions lanes{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()}, strict = lanes,
                                                                                      off = lanes;
  strict.strict_math = true;
  off.disabled_passes = {"reciprocals"};
  const auto agree = [&](auto f, const std::vector<std::int64_t>& sizes, auto count) {
    const auto value = compile(f, lanes);
    for (const CompileOptions& way : {lanes, strict, off}) {
      const auto slopes = compile(grad<0>(f), way);
      for (const std::int64_t n : sizes) {
        CAPTURE(n);
        const auto x = numbers(static_cast<std::size_t>(count(n)), 0.3);
        check_close(slopes(x, n), eager(grad<0>(f))(x, n));
      }
    }
  };
  agree(diffused, {0, 1, 2, 3, 4, 9, 19, 35}, [](std::int64_t n) { return n * n; });
  agree(shares, {0, 1, 2, 7, 17, 33}, [](std::int64_t n) { return n; });
  // Divisors at the ends of the range of numbers.
  const auto quotient = [](A u, I n) {
    return FOR(0, n, D(0.0), [&](I i, D s) { return s + u[2 * i] / u[2 * i + 1]; });
  };
  const auto slopes = compile(grad<0>(sig<double(Array<double>, std::int64_t)>(quotient)), lanes);
  const double inf = std::numeric_limits<double>::infinity();
  for (const double divisor : {1e-300, 1e300, -1e200, inf, -inf}) {
    CAPTURE(divisor);
    const std::vector<double> x{2.0, divisor};
    const auto got = slopes(x, std::int64_t{1});
    CHECK(got[0] == 1 / divisor);
    const double expected = -(2.0 / divisor) * (1 / divisor);
    CHECK(got[1] == Approx(expected).epsilon(1e-12));
  }
}
