// merge: equal functions become one, with the same results, and a model's repeated parts are printed once.
#include "lantern/compiler/passes/memory/merge.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "../correctness/agree.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/encode.hpp"
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

std::string merged(const std::string& text) {
  const auto module = ir::parse(text);
  passes::merge(*module);
  ir::verify(*module);
  return ir::print(*module);
}

/// A module whose entry calls @a and @b, each with the text of a body.
std::string with_two(const std::string& a, const std::string& b, const std::string& attribute = "") {
  return "entry @f\n\nfun @f(%x: f64) -> f64 {\n  %1 = call" + attribute +
         " @a(%x) : f64\n  %2 = call @a(%1) : f64\n  %3 = call @b(%2) : f64\n  yield %3\n}\n\n"
         "fun @a(%x: f64) -> f64 {\n" + a + "}\n\nfun @b(%x: f64) -> f64 {\n" + b + "}\n";
}

std::size_t functions_in(const std::string& ir) {
  std::size_t n = 0;
  for (std::size_t at = ir.find("fun @"); at != std::string::npos; at = ir.find("fun @", at + 1)) ++n;
  return n;
}

/// Many parameters, each with an update of its own, as an optimiser's: outline cuts them into pieces.
auto updates(int count, bool same) {
  return [count, same](A a) {
    A s = a;
    for (int k = 0; k < count; ++k)
      s = FOR(0, s.size(), s, [&](I i, A next) { return next.set(i, sin(s[i]) + (same ? 0.1 : 0.1 * k)); });
    return FOR(0, s.size(), D(0.0), [&](I i, D sum) { return sum + s[i] * s[i]; });
  };
}

}  // namespace

TEST_CASE("merge: equal functions become one", "[passes]") {
  const std::string sine = "  %1 = sin %x : f64\n  yield %1\n";
  const std::string got = merged(with_two(sine, sine));
  CHECK(functions_in(got) == 2);
  CHECK(got.find("call @b") == std::string::npos);
  CHECK(got.find("%3 = call @a(%2)") != std::string::npos);
}

TEST_CASE("merge: functions that differ in anything stay", "[passes]") {
  const std::string sine = "  %1 = sin %x : f64\n  yield %1\n";
  for (const std::string other :
       {"  %1 = cos %x : f64\n  yield %1\n", "  %1 = sin %x : f64\n  yield %x\n",
        "  %1 = sin %x : f64 @ \"a.cpp\":3\n  yield %1\n", "  %y = sin %x : f64\n  yield %y\n",
        "  %1 = sin %x : f64\n  %2 = sin %x : f64\n  yield %1\n"}) {
    INFO(other);
    CHECK(functions_in(merged(with_two(sine, other))) == 3);
  }
  const std::string number = "  %1 = constant 0.0 : f64\n  yield %1\n";
  CHECK(functions_in(merged(with_two(number, "  %1 = constant -0.0 : f64\n  yield %1\n"))) == 3);
  // What threads share out is called in another way.
  CHECK(functions_in(merged(with_two(sine, sine, "[fork 2 2]"))) == 3);
}

TEST_CASE("merge: callers of functions that have become one", "[passes]") {
  const std::string got = merged(R"(entry @f

fun @f(%x: f64) -> f64 {
  %1 = call @a(%x) : f64
  %2 = call @b(%1) : f64
  %3 = call @self(%2) : f64
  %4 = call @again(%3) : f64
  yield %4
}

fun @a(%x: f64) -> f64 {
  %1 = call @c(%x) : f64
  yield %1
}

fun @b(%x: f64) -> f64 {
  %1 = call @d(%x) : f64
  yield %1
}

fun @c(%x: f64) -> f64 {
  %1 = exp %x : f64
  yield %1
}

fun @d(%x: f64) -> f64 {
  %1 = exp %x : f64
  yield %1
}

fun @self(%x: f64) -> f64 {
  %1 = call @self(%x) : f64
  yield %1
}

fun @again(%x: f64) -> f64 {
  %1 = call @again(%x) : f64
  yield %1
}
)");
  CHECK(functions_in(got) == 4);  // f, a, c, self
  CHECK(got.find("call @self(%3)") != std::string::npos);
}

TEST_CASE("merge: a model's repeated parts are compiled once, and compute what they did", "[passes]") {
  const std::vector<double> x{0.3, -0.2, 0.7, 1.1, -0.4};
  for (const bool same : {true, false}) {
    const auto program = value_and_grad<0>(updates(70, same));
    const auto apart = compile(program, {.target = Target::c, .disabled_passes = {"merge"}});
    const auto together = compile(program, {.target = Target::c});
    CHECK(apart(x) == together(x));
    const std::size_t before = functions_in(apart.source("ir")), after = functions_in(together.source("ir"));
    CHECK(before >= 8);
    if (same)
      CHECK(3 * after < 2 * before);
    else
      CHECK(after <= before);
    if (same)
      CHECK(compile(program, {.target = Target::cpp})(x) ==
            compile(program, {.target = Target::cpp, .disabled_passes = {"merge"}})(x));
  }
}

TEST_CASE("encoded: equal graphs alone have equal bytes", "[passes]") {
  const std::string text = "entry @f\n\nfun @f(%x: f64, %n: i64) -> f64 @ \"a.cpp\":1 {\n"
                           "  %1 = constant 2.0 : f64 @ \"a.cpp\":2:3\n  %2 = mul %x, %1 : f64\n  yield %2\n}\n";
  const auto bytes = [](const std::string& t) { return ir::encoded(*ir::parse(t)); };
  CHECK(bytes(text) == bytes(text));
  CHECK(bytes(text) == bytes(ir::print(*ir::parse(text), {.locations = true, .names = true})));
  std::vector<std::string> all{bytes(text)};
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    INFO(other);
    const std::string code = bytes(other);
    CHECK(std::ranges::find(all, code) == all.end());
    all.push_back(code);
  };
  changed("2.0", "2.0000000000000004");
  changed("2.0", "-0.0");
  changed("mul %x, %1", "mul %1, %x");
  changed("mul", "add");
  changed("%n: i64", "%n: i32");
  changed("%n: i64", "%m: i64");
  changed("%n: i64", "%n: f64[?]");
  changed("%n: i64", "%n: f64[3]");
  changed("%n: i64", "%n: f32[3]");
  changed("\"a.cpp\":1", "\"b.cpp\":1");
  changed(":2:3", ":2:4");
  changed(":2:3", ":3:3");
  changed("yield %2", "yield %1");
}
