// loop_fusion: which loops become one, which stay apart, and that nothing changes.
#include "lantern/compiler/passes/array/loop_fusion.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <lantern/tensor.hpp>
#include <ranges>

#include "../correctness/agree.hpp"
#include "interpreter.hpp"
#include "lantern/compiler/passes/memory/inplace.hpp"
#include "lantern/compiler/passes/schedule/loop_order.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

/// A loop over i < `bound` that makes the array %name out of `start`. `body` defines the element %name.e of
/// each iteration; in it $i is the index and $s the array so far. `at`: where the element goes.
std::string loop(const std::string& name, const std::string& body, const std::string& start = "%start",
                 const std::string& bound = "%n", const std::string& at = "$i") {
  std::string text = "  %" + name + ".n, %" + name + " = loop %zero, " + start +
                     " : i64, f64[?] while (%$c: i64, %$t: f64[?]) {\n    %$l = lt %$c, " + bound +
                     " : bool\n    yield %$l\n  } do ($i: i64, $s: f64[?]) {\n" + body +
                     "    %$u = set $s, " + at + ", %" + name +
                     ".e : f64[?]\n    %$o = add $i, %one : i64\n    yield %$o, %$u\n  }\n";
  for (std::size_t k = 0; (k = text.find('$', k)) != std::string::npos;)
    text.replace(k, 1, (text[k + 1] == 'i' || text[k + 1] == 's' ? "%" : "") + name + ".");
  return text;
}

std::string program(const std::string& body, const std::string& result) {
  return "entry @f\n\nfun @f(%x: f64[?], %y: f64[?], %n: i64) -> f64[?] {\n  %zero = constant 0 : i64\n  "
         "%one = constant 1 : i64\n  %half = constant 0.5 : f64\n  %start = fill %half, %n : f64[?]\n" +
         body + "  yield " + result + "\n}\n";
}

/// How many loops the pass leaves; the program must give what it gave, also after updates in place.
std::size_t loops_left(const std::string& text, bool runs = true) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  using ir::test::Interpreter;
  const auto value = [&] {
    if (!runs) return std::vector<double>();  // the interpreter prints nothing
    return Interpreter().run(*module, {Interpreter::tensor({4}, {1, -2, 3, 0.25}),
                                       Interpreter::tensor({4}, {5, 6, -7, 8}), Interpreter::integer(3)});
  };
  const auto before = value();
  passes::loop_fusion(*module);
  ir::verify(*module);
  CHECK(value() == before);
  passes::inplace(*module);
  CHECK(value() == before);
  std::size_t loops = 0;
  for (const ir::Function* f : module->functions())
    ir::walk(f->body, [&](const ir::Op* op) { loops += op->is(ir::Opcode::loop_); });
  return loops;
}

const std::string a = loop("a", "    %a.v = get %x, $i : f64\n    %a.e = mul %a.v, %a.v : f64\n");
const std::string sine = "    %b.v = get %a, $i : f64\n    %b.e = sin %b.v : f64\n";

}  // namespace

TEST_CASE("loop_fusion: what a loop stores and the next one reads in the same iteration", "[passes]") {
  const auto module = ir::parse(program(a + loop("b", sine), "%b"));
  passes::loop_fusion(*module);
  ir::verify(*module);
  CHECK(ir::print(*module) == R"(entry @f

fun @f(%x: f64[?], %y: f64[?], %n: i64) -> f64[?] {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %half = constant 0.5 : f64
  %start = fill %half, %n : f64[?]
  %b, %b.2 = loop %zero, %start : i64, f64[?] while (%b.3: i64, %b.4: f64[?]) {
    %b.5 = lt %b.3, %n : bool
    yield %b.5
  } do (%b.6: i64, %b.7: f64[?]) {
    %a = get %x, %b.6 : f64
    %a.2 = mul %a, %a : f64
    %a.3 = add %b.6, %one : i64
    %b.8 = sin %a.2 : f64
    %b.9 = set %b.7, %b.6, %b.8 : f64[?]
    yield %a.3, %b.9
  }
  yield %b.2
}
)");
}

TEST_CASE("loop_fusion: loops that become one", "[passes]") {
  SECTION("the first array is asked for later, too") {
    CHECK(loops_left(program(a + loop("b", sine) + "  %both = add %a, %b : f64[?]\n", "%both")) == 1);
  }
  SECTION("three in a row") {
    CHECK(loops_left(program(a + loop("b", sine) +
                                 loop("c",
                                      "    %c.v = get %a, $i : f64\n    %c.w = get %b, $i : f64\n    %c.e = "
                                      "add %c.v, %c.w : f64\n"),
                             "%c")) == 1);
  }
  SECTION("an array handed on from loop to loop") {
    CHECK(loops_left(program(a + loop("b", "    %b.v = get $s, $i : f64\n    %b.e = sin %b.v : f64\n", "%a"),
                             "%b")) == 1);
  }
  SECTION("something else between them") {
    CHECK(loops_left(program(a + "  %two = add %one, %one : i64\n  %k = get %y, %two : f64\n" +
                                 loop("b", "    %b.v = get %a, $i : f64\n    %b.e = mul %b.v, %k : f64\n"),
                             "%b")) == 1);
  }
}

TEST_CASE("loop_fusion: loops that stay apart", "[passes]") {
  SECTION("nothing of the first is read") {
    CHECK(loops_left(program(a + loop("b", "    %b.v = get %y, $i : f64\n    %b.e = sin %b.v : f64\n") +
                                 "  %both = add %a, %b : f64[?]\n",
                             "%both")) == 2);
  }
  SECTION("another element is read") {
    CHECK(
        loops_left(program(a + loop("b",
                                    "    %b.k = sub %n, $i : i64\n    %b.j = sub %b.k, %one : i64\n    %b.v "
                                    "= get %a, %b.j : f64\n    %b.e = sin %b.v : f64\n"),
                           "%b")) == 2);
  }
  SECTION("other iterations") {
    CHECK(loops_left(program("  %fewer = sub %n, %one : i64\n" + a + loop("b", sine, "%start", "%fewer"),
                             "%b")) == 2);
  }
  SECTION("the first may write where the second has read") {
    CHECK(loops_left(program(loop("a", "    %a.v = get %x, $i : f64\n    %a.e = mul %a.v, %a.v : f64\n",
                                  "%start", "%n", "%zero") +
                                 loop("b", sine),
                             "%b")) == 2);
  }
  SECTION("the second updates what the first reads") {
    CHECK(loops_left(program(a + loop("b", sine, "%x"), "%b")) == 2);
  }
  SECTION("what the second updates is asked for later") {
    CHECK(loops_left(program(a + loop("b", "    %b.v = get $s, $i : f64\n    %b.e = sin %b.v : f64\n", "%a") +
                                 "  %both = add %a, %b : f64[?]\n",
                             "%both")) == 2);
  }
  SECTION("something between them needs the first") {
    CHECK(loops_left(program(a + "  %k = get %a, %one : f64\n" +
                                 loop("b", "    %b.v = get %a, $i : f64\n    %b.e = mul %b.v, %k : f64\n"),
                             "%b")) == 2);
  }
  SECTION("the iterations of one wait for each other") {
    // A running sum: as a loop of its own the first can still run in lanes.
    const std::string sums =
        "  %last, %b, %sum = loop %zero, %start, %half : i64, f64[?], f64 while (%c: i64, %t: f64[?], %r: "
        "f64) "
        "{\n    %l = lt %c, %n : bool\n    yield %l\n  } do (%i: i64, %s: f64[?], %q: f64) {\n    %v = get "
        "%a, "
        "%i : f64\n    %w = add %q, %v : f64\n    %u = set %s, %i, %w : f64[?]\n    %o = add %i, %one : i64\n"
        "    yield %o, %u, %w\n  }\n";
    CHECK(loops_left(program(a + sums, "%b")) == 2);
  }
  SECTION("what prints keeps its order") {
    CHECK(loops_left(
              program(loop("a",
                           "    %a.v = get %x, $i : f64\n    print %a.v, \"v\"\n    %a.e = mul %a.v, %a.v "
                           ": f64\n") +
                          loop("b", sine),
                      "%b"),
              false) == 2);
  }
}

TEST_CASE("loop_fusion: derivatives of loops that follow one another", "[passes]") {
  using D = Rep<double>;
  using I = Rep<std::int64_t>;
  using A = Rep<Array<double>>;
  const auto f = [](A x) {
    const I n = x.size();
    const A a = FOR(0, n, fill(D(0.0), n), [&](I i, A s) { return s.set(i, sin(x[i]) + x[0]); });
    const A b = FOR(0, n, fill(D(0.0), n), [&](I i, A s) { return s.set(i, a[i] * exp(x[i]) + 0.5); });
    const A c = FOR(0, n, b, [&](I i, A s) { return s.set(i, s[i] * a[i]); });
    return FOR(0, n, D(0.0), [&](I i, D sum) { return sum + c[i] * b[i] + a[n - 1 - i]; });
  };
  const auto gradient = grad(f);
  for (const std::size_t n : {1, 2, 9, 40}) {
    std::vector<double> x;
    for (std::size_t i = 0; i < n; ++i) x.push_back(0.1 * static_cast<double>(i) - 0.3);
    const auto expected = eager(gradient)(x);
    for (const Target target : {Target::c, Target::cpp})
      for (const bool fused : {true, false}) {
        CompileOptions options{.target = target, .opt = 3};
        if (!fused) options.disabled_passes = {"loop_fusion"};
        const auto got = compile(gradient, options)(x);
        for (std::size_t i = 0; i < n; ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
      }
  }
}

TEST_CASE("loop_fusion: loops in loops that have become one are fused, too", "[passes]") {
  const auto f = [](Rep<Tensor<double, 2, 30, 50>> a, Rep<Tensor<double, 2, 20, 50>> b,
                    Rep<Tensor<double, 30>> v, Rep<Tensor<double, 20>> w) {
    return concat<1>(relu(a + unsqueeze<1>(v)), relu(b * unsqueeze<1>(w)));
  };
  const auto compiled = compile(f, {.target = Target::cpp, .disabled_passes = {"vectorise"}});
  // Each half goes into the result at once.
  const std::string text = compiled.source("ir");
  CHECK(std::ranges::distance(std::views::split(text, std::string_view(" = set"))) - 1 == 2);
  TensorValue<double> a({2, 30, 50}), b({2, 20, 50}), v({30}, 0.75), w({20}, -0.5);
  for (std::size_t i = 0; i < a.data.size(); ++i) a.data[i] = std::sin(static_cast<double>(i));
  for (std::size_t i = 0; i < b.data.size(); ++i) b.data[i] = std::cos(2.0 * static_cast<double>(i));
  const TensorValue<double> got = compiled(a, b, v, w), expected = eager(f)(a, b, v, w);
  REQUIRE(got.shape == expected.shape);
  for (std::size_t i = 0; i < got.data.size(); ++i)
    CHECK(got.data[i] == Approx(expected.data[i]).margin(1e-15));
}

TEST_CASE("between: what takes from a tape follows what saves to it", "[passes]") {
  // The number that is saved needs the first loop. What is taken needs nothing, but that number has to be
  // there.
  const auto module = ir::parse(
      program(a +
                  "  %kept = get %a, %zero : f64\n  push[0] %kept\n  push[1] %half\n  %taken = pop[0] : f64\n"
                  "  %other = pop[1] : f64\n" +
                  loop("b", "    %b.v = get %y, $i : f64\n    %b.e = mul %b.v, %half : f64\n") +
                  "  %both = add %a, %b : f64[?]\n  %t = mul %taken, %other : f64\n  %all = set %both, "
                  "%zero, %t : f64[?]\n",
              "%all"));
  ir::verify(*module);
  std::vector<ir::Op*> loops;
  for (ir::Op* op : module->functions().front()->body->ops)
    if (op->is(ir::Opcode::loop_)) loops.push_back(op);
  REQUIRE(loops.size() == 2);
  passes::BlockDoings doings;
  const auto found =
      passes::between({loops[0]}, loops[1], 100, doings, [](ir::Op* op) { return std::vector{op}; });
  REQUIRE(found);
  const auto tapes = [](const std::vector<ir::Op*>& ops) {
    std::vector<std::pair<bool, std::int64_t>> all;
    for (const ir::Op* op : ops)
      if (ir::is_on_tape(*op)) all.emplace_back(op->is(ir::Opcode::push_), op->integer);
    return all;
  };
  CHECK(tapes(found->later) == std::vector<std::pair<bool, std::int64_t>>{{true, 0}, {false, 0}});
  CHECK(tapes(found->earlier) == std::vector<std::pair<bool, std::int64_t>>{{true, 1}, {false, 1}});
}
