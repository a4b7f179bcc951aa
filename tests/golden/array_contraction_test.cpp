// array_contraction: which arrays become numbers of an iteration, which stay, and that nothing changes.
#include "lantern/compiler/passes/array/array_contraction.hpp"

#include <catch2/catch.hpp>

#include "../correctness/agree.hpp"
#include "../occurrences.hpp"
#include "interpreter.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

/// A loop over i < n with a sum %s and a tensor %t, which its body updates to %sum and %last.
std::string program(const std::string& body, const std::string& type = "f64[?]",
                    const std::string& start = "  %start = fill %none, %n : f64[?]\n",
                    const std::string& result = "%total", const std::string& from = "%zero") {
  return "entry @f\n\nfun @f(%x: f64[?], %n: i64) -> f64 {\n  %zero = constant 0 : i64\n  %one = constant 1 "
         ": i64\n  %three = constant 3 : i64\n  %none = constant 0 : f64\n  %half = constant 0.5 : f64\n" +
         start + "  %count, %total, %after = loop " + from + ", %none, %start : i64, f64, " + type +
         " while (%ci: i64, %cs: f64, %ct: " + type +
         ") {\n    %less = lt %ci, %n : bool\n    yield %less\n  } do (%i: i64, %s: f64, %t: " + type +
         ") {\n    %v = get %x, %i : f64\n" + body +
         "    %sum = add %s, %y : f64\n    %next = add %i, %one : i64\n    yield %next, %sum, %last\n  }\n" +
         (result == "%total" ? "" : "  %z = get %after, %zero : f64\n") + "  yield " + result + "\n}\n";
}

/// True where no tensor is left but the argument; the program must give what it gave. (The interpreter knows
/// vectors, no matrices.)
bool gone(const std::string& text, bool runs = true) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  using ir::test::Interpreter;
  const auto value = [&] {
    if (!runs) return std::vector<double>();
    return Interpreter().run(*module, {Interpreter::tensor({3}, {1, -2, 0.25}), Interpreter::integer(3)});
  };
  const auto before = value();
  passes::array_contraction(*module);
  ir::verify(*module);
  CHECK(value() == before);
  return ir::print(*module).find("fill") == std::string::npos;
}

const std::string add_and_read =
    "    %a = add_at %t, %i, %v : f64[?]\n    %y = get %a, %i : f64\n    %last = set %a, %i, %none : "
    "f64[?]\n";

}  // namespace

TEST_CASE("array_contraction: what an iteration adds to its element and reads again", "[passes]") {
  const auto module = ir::parse(program(add_and_read));
  passes::array_contraction(*module);
  ir::verify(*module);
  CHECK(ir::print(*module) == R"(entry @f

fun @f(%x: f64[?], %n: i64) -> f64 {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %none = constant 0 : f64
  %count, %total = loop %zero, %none : i64, f64 while (%ci: i64, %cs: f64) {
    %less = lt %ci, %n : bool
    yield %less
  } do (%i: i64, %s: f64) {
    %v = get %x, %i : f64
    %sum = add %s, %v : f64
    %next = add %i, %one : i64
    yield %next, %sum
  }
  yield %total
}
)");
}

TEST_CASE("array_contraction: arrays that become numbers", "[passes]") {
  CHECK(gone(program(add_and_read)));
  SECTION("that begin as another number") {
    CHECK(
        gone(program("    %w = get %t, %i : f64\n    %a = add_at %t, %i, %v : f64[?]\n    %r = get %a, %i : "
                     "f64\n    %y = mul %r, %w : f64\n    %last = set %a, %i, %y : f64[?]\n",
                     "f64[?]", "  %start = fill %half, %n : f64[?]\n")));
  }
  SECTION("that are read before and after, and in a branch") {
    CHECK(
        gone(program("    %w = get %t, %i : f64\n    %a = set %t, %i, %v : f64[?]\n    %b = add_at %a, %i, "
                     "%v : f64[?]\n    %pos = lt %w, %v : bool\n    %y = branch %pos : f64 {\n      %r = "
                     "get %b, %i : f64\n      yield %r\n    } else {\n      %q = get %a, %i : f64\n      "
                     "yield %q\n    }\n    %last = set %b, %i, %none : f64[?]\n")));
  }
  SECTION("with several numbers an iteration") {
    CHECK(gone(program("    %a = set %t, %i, %one, %v : f64[?,?]\n    %b = add_at %a, %i, %zero, %half : "
                       "f64[?,?]\n    %r = get %b, %i, %one : f64\n    %q = get %b, %i, %zero : f64\n    %y "
                       "= mul %r, %q : f64\n    %last = set %b, %i, %zero, %y : f64[?,?]\n",
                       "f64[?,?]", "  %start = fill %none, %n, %three : f64[?,?]\n"),
               false));
  }
}

TEST_CASE("array_contraction: arrays that stay", "[passes]") {
  SECTION("one that is read after the loop") {
    CHECK_FALSE(gone(program(add_and_read, "f64[?]", "  %start = fill %none, %n : f64[?]\n", "%z")));
  }
  SECTION("an element of another iteration") {
    CHECK_FALSE(
        gone(program("    %a = add_at %t, %i, %v : f64[?]\n    %y = get %a, %zero : f64\n    %last = "
                     "set %a, %i, %v : f64[?]\n")));
    CHECK_FALSE(
        gone(program("    %a = add_at %t, %zero, %v : f64[?]\n    %y = get %a, %zero : f64\n    "
                     "%last = set %a, %i, %none : f64[?]\n")));
  }
  SECTION("an array of another size, or a loop that begins later") {
    CHECK_FALSE(gone(program(add_and_read, "f64[?]", "  %start = fill %none, %three : f64[?]\n")));
    CHECK_FALSE(
        gone(program(add_and_read, "f64[?]", "  %start = fill %none, %n : f64[?]\n", "%total", "%one")));
  }
  SECTION("the iteration as row here, as column there") {
    CHECK_FALSE(
        gone(program("    %a = add_at %t, %i, %one, %v : f64[?,?]\n    %y = get %a, %one, %i : f64\n  "
                     "  %last = set %a, %i, %one, %y : f64[?,?]\n",
                     "f64[?,?]", "  %start = fill %none, %n, %n : f64[?,?]\n"),
             false));
  }
  SECTION("what is no fill") {
    CHECK_FALSE(gone(program(add_and_read, "f64[?]",
                             "  %filled = fill %none, %n : f64[?]\n  %start = set %filled, %one, %half : "
                             "f64[?]\n")));
  }
}

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

const std::vector<double> x{0.3, -0.7, 1.2, 0.05, 0.9, -1.1, 0.4, 0.6, -0.2, 0.8, 1.5};

/// The gradient with the pass and without: one loop that reads its argument alone, or arrays between.
template <class F>
void check_gradient(F f) {
  const auto expected = eager(grad(f))(x);
  for (const bool on : {true, false}) {
    CompileOptions options{.target = Target::c, .opt = 3};
    if (!on) options.disabled_passes = {"array_contraction"};
    const auto gradient = compile(grad(f), options);
    const std::string ir = gradient.source("ir");
    const auto count = [&](const std::string& what) {
      std::size_t n = 0;
      for (std::size_t k = 0; (k = ir.find(what, k)) != std::string::npos; ++k) ++n;
      return n;
    };
    CHECK(lantern::test::loops_in(ir) == 1);
    CHECK((count("= get %") == 1) == on);
    const std::vector<double> got = gradient(x);
    REQUIRE(got.size() == x.size());
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("array_contraction: the gradient of arrays made one after the other is one loop", "[passes]") {
  check_gradient([](A a) {
    const I n = a.size();
    const auto each = [&](auto g) {
      return FOR(0, n, fill(D(0.0), n), [&](I i, A s) { return s.set(i, g(i)); });
    };
    const A b = each([&](I i) { return sin(a[i]) * a[i]; });
    const A c = each([&](I i) { return exp(b[i]) + a[i]; });
    return FOR(0, n, 0.0, [&](I i, D s) { return s + c[i] * b[i]; });
  });
  check_gradient([](A a) {
    const I n = a.size();
    const M rows = FOR(0, n, fill(D(0.0), n, 2),
                       [&](I i, M m) { return m.set(i, 0, sin(a[i])).set(i, 1, a[i] * a[i]); });
    return FOR(0, n, 0.0, [&](I i, D s) { return s + rows(i, 0) * exp(rows(i, 1)); });
  });
}
