// The passes: each rewrite as text before and after, exactness at corners, random programs, depth and time.
#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>

#include "../correctness/random_program.hpp"
#include "interpreter.hpp"
#include "lantern/compiler/passes/array/invariant_tables.hpp"
#include "lantern/compiler/passes/array/loop_fusion.hpp"
#include "lantern/compiler/passes/array/retiming.hpp"
#include "lantern/compiler/passes/array/store_forwarding.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/compiler/passes/direct/contify.hpp"
#include "lantern/compiler/passes/direct/tail_calls.hpp"
#include "lantern/compiler/passes/direct/tape_narrowing.hpp"
#include "lantern/compiler/passes/memory/inplace.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::ir;
using ir::test::Interpreter;
using passes::PipelineOptions;

namespace {

using Run = void (*)(Module&);

void cse_all(Module& m) {
  for (Function* f : m.functions()) passes::cse(*f);
}
void dead(Module& m) { passes::eliminate_dead(m); }
void inlining(Module& m) { passes::inline_calls(m); }
void folded(Module& m) {
  for (Function* f : m.functions()) passes::fold(*f);
  dead(m);
}
void contified(Module& m) { passes::contify(m); }

std::string after(Run run, const std::string& text) {
  const auto module = parse(text);
  verify(*module);
  run(*module);
  verify(*module);
  return print(*module, {.names = false});
}

/// Both texts up to names.
void check_rewrite(Run run, const std::string& before, const std::string& expected) {
  CHECK(after(run, before) == print(*parse(expected), {.names = false}));
}

/// An entry @f with these operations, folded, and what its body should become.
void check_fold(const std::string& before, const std::string& expected) {
  const std::string head =
      "entry @f\nfun @f(%x: f64, %y: f64, %n: i64, %m: i64, %c: bool, %d: bool, %t: f64[?], %u: f64[2,3]) "
      "-> ";
  check_rewrite(folded, head + before + "\n}", head + expected + "\n}");
}

/// In whole programs: `f` is the only function.
std::vector<double> value(const Module& m, const Interpreter::Items& arguments) {
  return Interpreter().run(m, arguments);
}

}  // namespace

// ---- fold

TEST_CASE("of two derivatives in one block each saves the comparisons of its own numbers") {
  const auto twice = [](const std::string& body) {
    return "fun @f(%x: f64, %y: f64, %n: i64) -> bool, bool {\n%f = constant false : bool\n"
           "%i, %r, %s = loop %n, %f, %f : i64, bool, bool while (%j: i64, %u: bool, %v: bool) {\n"
           "%z = constant 0 : i64\n%m = lt %z, %j : bool\nyield %m\n} do (%k: i64, %t: bool, %w: bool) {\n"
           "%one = constant 1 : i64\n%h = sub %k, %one : i64\n%x1 = sin %x : f64\n%y1 = cos %y : f64\n"
           "%0 = constant 0 : f64\n" + body + "\nyield %h, %p, %q\n}\nyield %r, %s\n}";
  };
  check_rewrite(passes::tape_narrowing,
                twice("push[0] %x1\n%a = pop[0] : f64\n%p = lt %0, %a : bool\n"
                      "push[1] %y1\n%b = pop[1] : f64\n%q = lt %0, %b : bool"),
                twice("%1 = constant 0 : f64\n%a = lt %1, %x1 : bool\npush[2] %a\n%p = pop[2] : bool\n"
                      "%2 = constant 0 : f64\n%b = lt %2, %y1 : bool\npush[3] %b\n%q = pop[3] : bool"));
}

TEST_CASE("a number that the backward part has is not saved") {
  // The second of two loops pops what the first one has pushed.
  const auto loops = [](const std::string& first, const std::string& second, const std::string& start) {
    const auto loop = [](const std::string& name, const std::string& body, const std::string& next) {
      return "%" + name + "i, %" + name + "r = loop %n, %x : i64, f64 while (%" + name + "j: i64, %" + name + "u: f64) {\n" +
             "%" + name + "z = constant 0 : i64\n%" + name + "m = lt %" + name + "z, %" + name + "j : bool\nyield %" + name +
             "m\n} do (%" + name + "k: i64, %" + name + "t: f64) {\n%" + name + "one = constant 1 : i64\n%" + name + "h = sub %" +
             name + "k, %" + name + "one : i64\n" + body + "\nyield %" + name + "h, " + next + "\n}\n";
    };
    return "fun @f(%x: f64, %n: i64) -> f64 {\n" + start + loop("a", first, "%at") + loop("b", second, "%p") + "yield %br\n}";
  };
  const std::string pop = "%g = pop[0] : f64\n%p = mul %bt, %g : f64";
  check_rewrite(passes::tape_narrowing, loops("push[0] %x", pop, ""), loops("", "%p = mul %bt, %x : f64", ""));
  check_rewrite(passes::tape_narrowing, loops("push[0] %y", pop, "%y = sin %x : f64\n"),
                loops("", "%p = mul %bt, %y : f64", "%y = sin %x : f64\n"));
  // One that each iteration makes anew is.
  const std::string kept = loops("%y = sin %at : f64\npush[0] %y", pop, "");
  check_rewrite(passes::tape_narrowing, kept, kept);
  // So is one of two.
  const std::string two = loops("push[0] %x\n%y = sin %at : f64\npush[0] %y", pop, "");
  check_rewrite(passes::tape_narrowing, two, two);
}

TEST_CASE("constants are computed as the eager handler computes them", "[passes][fold]") {
  check_fold(
      "f64, f64 {\n%1 = constant 2 : f64\n%2 = constant 0.5 : f64\n%3 = div %1, %2\n%4 = sin %3\n%5 = fma "
      "%1, %2, %1 yield %4, %5",
      "f64, f64 {\n%4 = constant -0.7568024953079282 : f64\n%5 = constant 3 : f64\nyield %4, %5");
  check_fold("f32 {\n%1 = constant 0.1 : f64\n%2 = cast[f32] %1 : f32\n%3 = add %2, %2 yield %3",
             "f32 {\n%3 = constant 0.2 : f32\nyield %3");
  check_fold(
      "i64 {\n%1 = constant 7 : i64\n%2 = constant -2 : i64\n%3 = rem %1, %2\n%4 = div %1, %2\n%5 = mul %3, "
      "%4 yield %5",
      "i64 {\n%5 = constant -3 : i64\nyield %5");
}

TEST_CASE("what fails is not folded", "[passes][fold]") {
  for (const std::string failing : {"div", "rem"}) {
    const std::string body = "i64 {\n%1 = constant 1 : i64\n%2 = constant 0 : i64\n%3 = " + failing + " %1, %2 yield %3";
    check_fold(body, body);
  }
}

TEST_CASE("integers are folded as they wrap, casts to them as they saturate", "[passes][fold]") {
  const auto cast = [](const std::string& type, const std::string& x, const std::string& result) {
    check_fold(type + " {\n%1 = constant " + x + " : f64\n%2 = cast[" + type + "] %1 yield %2",
               type + " {\n%1 = constant " + result + " : " + type + "\nyield %1");
  };
  cast("i64", "-1e300", "-9223372036854775808"), cast("i32", "1e10", "2147483647"), cast("i64", "nan", "0");
  const std::string least = "i64 {\n%1 = constant -9223372036854775808 : i64\n";
  check_fold(least + "%2 = add %1, %1 yield %2", "i64 {\n%1 = constant 0 : i64\nyield %1");
  check_fold(least + "%2 = constant -1 : i64\n%3 = div %1, %2 yield %3", least + "yield %1");
}

TEST_CASE("what is added and taken away again", "[passes][fold]") {
  check_fold("i64, i64, i64, i64, i64 {\n%1 = sub %m, %n\n%2 = add %n, %1\n%3 = add %1, %n\n%4 = add %m, %n\n"
             "%5 = sub %4, %m\n%6 = sub %4, %n\n%7 = sub %n, %m yield %2, %3, %5, %6, %7",
             "i64, i64, i64, i64, i64 {\n%7 = sub %n, %m yield %m, %m, %n, %m, %7");
  // Rounded numbers do not come back.
  const std::string rounded = "f64, i64 {\n%1 = sub %x, %y\n%2 = add %y, %1\n%3 = sub %n, %m\n%4 = sub %3, %n yield %2, %4";
  check_fold(rounded, rounded);
}

TEST_CASE("exact algebra", "[passes][fold]") {
  const std::string one = "%1 = constant 1 : f64\n", minus_zero = "%1 = constant -0 : f64\n",
                    zero = "%1 = constant 0 : f64\n";
  const std::string x = "f64 {\nyield %x", n = "i64 {\nyield %n";
  check_fold("f64 {\n" + one + "%2 = mul %x, %1 yield %2", x);
  check_fold("f64 {\n" + one + "%2 = mul %1, %x yield %2", x);
  check_fold("f64 {\n" + one + "%2 = div %x, %1 yield %2", x);
  check_fold("f64 {\n" + minus_zero + "%2 = add %x, %1 yield %2", x);
  check_fold("f64 {\n" + zero + "%2 = sub %x, %1 yield %2", x);
  check_fold("f64 {\n%1 = neg %x\n%2 = neg %1 yield %2", x);
  check_fold("f64 {\n%2 = select %c, %x, %x yield %2", x);
  check_fold("f64 {\n%1 = constant true : bool\n%2 = select %1, %x, %y yield %2", x);
  check_fold("f64 {\n%1 = neg %y\n%2 = add %x, %1 yield %2", "f64 {\n%1 = sub %x, %y\nyield %1");
  check_fold("f64 {\n%1 = constant -1 : f64\n%2 = mul %1, %x yield %2", "f64 {\n%1 = neg %x\nyield %1");
  check_fold("i64 {\n%1 = constant 0 : i64\n%2 = add %1, %n yield %2", n);
  check_fold("i64 {\n%1 = constant 0 : i64\n%2 = mul %n, %1 yield %2",
             "i64 {\n%1 = constant 0 : i64\nyield %1");
  check_fold("bool {\n%1 = lnot %c\n%2 = lnot %1 yield %2", "bool {\nyield %c");
  check_fold("bool {\n%1 = constant false : bool\n%2 = lor %1, %c yield %2", "bool {\nyield %c");
  check_fold("bool {\n%1 = le %n, %n yield %1", "bool {\n%1 = constant true : bool\nyield %1");
  check_fold("f64 {\n%1 = cast[f64] %x : f64 yield %1", x);
  check_fold("i64 {\n%1 = cast[f64] %n : f64\n%2 = cast[i64] %1 : i64 yield %2",
             "i64 {\n%1 = cast[f64] %n : f64\n%2 = cast[i64] %1 : i64\nyield %2");
  check_fold("f64 {\n%1 = cast_like %n, %x yield %1", "f64 {\n%1 = cast[f64] %n : f64 yield %1");
}

TEST_CASE("shapes are followed to where they come from", "[passes][fold]") {
  check_fold("i64 {\n%1 = dim[1] %u yield %1", "i64 {\n%1 = constant 3 : i64\nyield %1");
  check_fold("i64 {\n%1 = zeros_like %t\n%2 = add %1, %t\n%3 = dim[0] %2 yield %3",
             "i64 {\n%1 = dim[0] %t\nyield %1");
  check_fold("i64 {\n%1 = fill %x, %n : f64[?]\n%3 = dim[0] %1 yield %3", "i64 {\nyield %n");
  check_fold("f64[2,3] {\n%1 = transpose %u\n%2 = transpose %1 yield %2", "f64[2,3] {\nyield %u");
  check_fold("f64[?] {\n%1 = exp %t\n%2 = reduce_to %1, %t yield %2", "f64[?] {\n%1 = exp %t\nyield %1");
  check_fold("f64[2,3] {\n%1 = exp %u\n%2 = broadcast %1, %u yield %2", "f64[2,3] {\n%1 = exp %u\nyield %1");
}

TEST_CASE("sums with 0.0, products with 0.0 and comparisons of floats stay", "[passes][fold]") {
  for (const char* body : {"f64 {\n%1 = constant 0 : f64\n%2 = add %x, %1 : f64\nyield %2",
                           "f64 {\n%1 = constant 0 : f64\n%2 = add %1, %x : f64\nyield %2",
                           "f64 {\n%1 = constant -0 : f64\n%2 = sub %x, %1 : f64\nyield %2",
                           "f64 {\n%1 = constant 0 : f64\n%2 = mul %x, %1 : f64\nyield %2",
                           "f64 {\n%1 = sub %x, %x : f64\nyield %1", "f64 {\n%1 = div %x, %x : f64\nyield %1",
                           "bool {\n%1 = eq %x, %x : bool\nyield %1",
                           "bool {\n%1 = lt %x, %y : bool\n%2 = lnot %1 : bool\nyield %2"})
    check_fold(body, body);
}

TEST_CASE("rewrites hold at -0.0, infinity and NaN", "[passes][fold]") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double corners[] = {0.0, -0.0, 1.0, -1.0, 0.1, inf, -inf, nan, 5e-324, 1.7976931348623157e308};
  const char* const operations[] = {"add", "sub", "mul", "div", "min", "max", "pow"};
  for (const char* operation : operations)
    for (const double constant : {0.0, -0.0, 1.0, -1.0, inf, nan})
      for (const bool first : {true, false}) {
        Module m;
        m.entry = m.add_function("f", {F64}, {F64, F64});
        Builder b(m, m.entry->body);
        Value *x = m.entry->body->params[0], *c = b.number(constant);
        const Opcode code = opcode_named(operation);
        Value* plain = first ? b.emit(code, {c, x}) : b.emit(code, {x, c});
        Value* negated = b.emit(code, {b.emit(Opcode::neg_, {plain}), b.emit(Opcode::neg_, {x})});
        b.yield({plain, negated});
        std::vector<std::vector<double>> before;
        for (const double v : corners) before.push_back(value(m, {Interpreter::number(v)}));
        passes::simplify(m);
        verify(m);
        for (std::size_t i = 0; i < std::size(corners); ++i) {
          INFO(operation << " " << constant << " at " << corners[i] << "\n" << print(m));
          CHECK(ir::test::same_numbers(before[i], value(m, {Interpreter::number(corners[i])})));
        }
      }
}

TEST_CASE("a branch whose condition is known is spliced, in both forms", "[passes][fold]") {
  check_fold(
      "f64 {\n%1 = constant false : bool\n%2 = branch %1 : f64 { yield %x } else { %3 = exp %y yield %3 }\n"
      "%4 = sin %2 yield %4",
      "f64 {\n%1 = exp %y\n%2 = sin %1\nyield %2");
  check_rewrite(folded,
                "entry @f\nfun @f(%x: f64, %k: cont(f64)) cps {\n%1 = constant true : bool\nbranch %1 "
                "{\njump %k, %x yield } "
                "else {\n%2 = exp %x\njump %k, %2 yield }\ncheck %1, \"dropped\" yield }",
                "entry @f\nfun @f(%x: f64, %k: cont(f64)) cps {\njump %k, %x yield }");
}

TEST_CASE("results that do not depend on the condition leave a branch", "[passes][fold]") {
  check_fold(
      "f64, f64, bool {\n%1, %2, %3 = branch %c : f64, f64, bool {\n%4 = constant 2 : f64\n%5 = constant "
      "true : bool yield %x, %4, %5 } else "
      "{\n%4 = constant 2 : f64\n%5 = constant false : bool yield %x, %4, %5 }\nyield %1, %2, %3",
      "f64, f64, bool {\n%1 = constant 2 : f64 yield %x, %1, %c");
}

TEST_CASE("a loop whose condition is false, and state that stays", "[passes][fold]") {
  check_fold(
      "f64 {\n%1 = loop %x : f64 while (%s: f64) { %2 = constant false : bool yield %2 } do (%s: f64) { %3 = "
      "exp %s "
      "yield %3 } yield %1",
      "f64 {\nyield %x");
  check_fold(
      "f64 {\n%1, %2 = loop %x, %y : f64, f64 while (%s: f64, %v: f64) { %3 = lt %s, %v yield %3 } do (%s: "
      "f64, %v: f64) {"
      " %4 = mul %s, %v yield %4, %v }\n%5 = add %1, %2 yield %5",
      "f64 {\n%1 = loop %x : f64 while (%s: f64) { %3 = lt %s, %y yield %3 } do (%s: f64) {"
      " %4 = mul %s, %y yield %4 }\n%5 = add %1, %y yield %5");
}

// ---- cse

TEST_CASE("equal expressions are computed once, also below, not beside", "[passes][cse]") {
  check_rewrite(cse_all,
                "fun @f(%x: f64, %c: bool) -> f64 {\n%1 = exp %x\n%2 = exp %x\n%3 = add %1, %2\n%4 = branch "
                "%c : f64 {\n%5 = exp %x\n%6 = sin "
                "%x yield %6 } else {\n%7 = sin %x\n%8 = add %7, %3 yield %8 }\n%9 = sin %x\n%10 = add %4, "
                "%9 yield %10 }",
                "fun @f(%x: f64, %c: bool) -> f64 {\n%1 = exp %x\n%3 = add %1, %1\n%4 = branch %c : f64 "
                "{\n%6 = sin %x yield %6 } "
                "else {\n%7 = sin %x\n%8 = add %7, %3 yield %8 }\n%9 = sin %x\n%10 = add %4, %9 yield %10 }");
  check_rewrite(cse_all,
                "fun @f(%x: f64, %k: cont(f64)) cps {\n%1 = exp %x\n%2 = fun (%y: f64) {\n%3 = exp %x\n%4 = "
                "add %y, %3\njump %k, %4 yield }\n"
                "jump %2, %1 yield }",
                "fun @f(%x: f64, %k: cont(f64)) cps {\n%1 = exp %x\n%2 = fun (%y: f64) {\n%4 = add %y, "
                "%1\njump %k, %4 yield }\n"
                "jump %2, %1 yield }");
}

TEST_CASE("constants are told apart by bits and type; cells, tapes and undef are not shared",
          "[passes][cse]") {
  for (const char* text : {"fun @f() -> f64, f64, f32, i64 {\n%1 = constant 0 : f64\n%2 = constant -0 : "
                           "f64\n%3 = constant 0 : f32\n%4 = constant 0 : i64 yield %1, "
                           "%2, %3, %4 }",
                           "fun @f(%x: f64) -> f64, f64 {\n%1 = ref_new %x : ref f64\n%2 = ref_new %x : ref "
                           "f64\n%3 = ref_get %1 : f64\nref_add %1, %x\n%4 = "
                           "ref_get %1 : f64\nref_add %2, %4\nyield %3, %4 }",
                           "fun @f(%x: f64) -> f64, f64 {\npush[0] %x\npush[0] %x\n%1 = pop[0] : f64\n%2 = "
                           "pop[0] : f64\n%3 = undef : f64\n%4 = undef : f64 yield "
                           "%1, %2 }"})
    check_rewrite(cse_all, text, text);
}

TEST_CASE("the user's names and places survive", "[passes][cse]") {
  const auto m = parse(
      "entry @f fun @f(%x: f64) -> f64 {\n%1 = exp %x : f64\n%y = exp %x : f64 @ \"m.cpp\":3:1\n%2 = add %1, "
      "%y : f64\nyield %2 }");
  cse_all(*m);
  CHECK(print(*m, {.locations = true}) ==
        "entry @f\n\nfun @f(%x: f64) -> f64 {\n  %y = exp %x : f64 @ \"m.cpp\":3:1\n  %1 = add %y, %y : "
        "f64\n  yield %1\n}\n");
}

// ---- dead code

TEST_CASE("results of a branch, and branches, that nobody needs", "[passes][dead]") {
  check_rewrite(dead,
                "entry @f fun @f(%x: f64, %c: bool) -> f64 {\n%0 = sin %x\nbranch %c { yield } else { yield "
                "}\n%1, %2 = branch %c : f64, f64 { %3 = exp %x yield %3, %x "
                "} else { yield %x, %x } yield %2 }",
                "entry @f fun @f(%x: f64, %c: bool) -> f64 {\n%2 = branch %c : f64 { yield %x } else { yield "
                "%x } yield %2 }");
}

TEST_CASE("loop state that only feeds itself", "[passes][dead]") {
  check_rewrite(dead,
                "entry @f fun @f(%x: f64, %n: i64) -> f64 {\n%1, %2, %3 = loop %x, %x, %n : f64, f64, i64 "
                "while (%a: f64, %b: f64, %i: i64) {\n%4 = lt "
                "%n, %i yield %4 } do (%a: f64, %b: f64, %i: i64) {\n%5 = mul %a, %x\n%6 = mul %b, %a\n%7 = "
                "add %i, %n yield %5, %6, %7 } yield %1 }",
                "entry @f fun @f(%x: f64, %n: i64) -> f64 {\n%1, %3 = loop %x, %n : f64, i64 while (%a: f64, "
                "%i: i64) {\n%4 = lt "
                "%n, %i yield %4 } do (%a: f64, %i: i64) {\n%5 = mul %a, %x\n%7 = add %i, %n yield %5, %7 } "
                "yield %1 }");
  check_rewrite(dead,
                "entry @f fun @f(%x: f64, %n: i64) -> f64 {\n%1 = loop %n : i64 while (%i: i64) {\n%4 = lt "
                "%n, %i yield %4 } do (%i: i64) { yield %n } "
                "yield %x }",
                "entry @f fun @f(%x: f64, %n: i64) -> f64 {\nyield %x }");
}

TEST_CASE("a loop with an effect stays, without its results", "[passes][dead]") {
  check_rewrite(dead,
                "entry @f fun @f(%x: f64, %n: i64) -> f64 {\n%1, %2 = loop %n, %x : i64, f64 while (%i: i64, "
                "%s: f64) {\n%4 = lt %n, %i yield %4 } do (%i: i64, %s: f64) {\n"
                "%5 = lt %i, %n\ncheck %5, \"m\"\nyield %n, %s } yield %x }",
                "entry @f fun @f(%x: f64, %n: i64) -> f64 {\n%1 = loop %n : i64 while (%i: i64) {\n%4 = lt "
                "%n, %i yield %4 } do (%i: i64) {\n"
                "%5 = lt %i, %n\ncheck %5, \"m\"\nyield %n } yield %x }");
}

TEST_CASE("cells that are never read, continuations that are never called", "[passes][dead]") {
  check_rewrite(dead,
                "entry @f fun @f(%x: f64, %d: ref f64, %k: cont(f64, ref f64)) cps {\n%1 = ref_new %x : ref "
                "f64\n%2 = ref_new %x : ref f64\n%3 = "
                "ref_new %x : ref f64\n%4 = fun (%y: f64) {\njump %k, %y, %3 yield }\njump %k, %x, "
                "%1\nref_add %2, %x\nref_add %d, %x yield }",
                "entry @f fun @f(%x: f64, %d: ref f64, %k: cont(f64, ref f64)) cps {\n%1 = ref_new %x : ref "
                "f64\njump %k, %x, %1\nref_add %d, %x yield }");
}

TEST_CASE("parameters and results of functions, also through recursion", "[passes][dead]") {
  check_rewrite(
      dead,
      "entry @f fun @f(%x: f64, %n: i64) -> f64 {\n%1, %2 = call @g(%x, %x, %n) : f64, f64 yield %1 }\n"
      "fun @g(%x: f64, %y: f64, %n: i64) -> f64, f64 {\n%0 = constant 0 : i64\n%c = lt %0, %n\n%1, %2 = "
      "branch %c : f64, f64 {\n%3 = sub %n, %n\n%4 = exp %y\n"
      "%5, %6 = call @g(%x, %4, %3) : f64, f64 yield %5, %6 } else { yield %x, %y } yield %1, %2 }\nfun "
      "@h(%x: f64) -> f64 { yield %x }",
      "entry @f fun @f(%x: f64, %n: i64) -> f64 {\n%1 = call @g(%x, %n) : f64 yield %1 }\n"
      "fun @g(%x: f64, %n: i64) -> f64 {\n%0 = constant 0 : i64\n%c = lt %0, %n\n%1 = branch %c : f64 {\n%3 "
      "= sub %n, %n\n"
      "%5 = call @g(%x, %3) : f64 yield %5 } else { yield %x } yield %1 }");
}

TEST_CASE("calls without effects go, calls that push stay", "[passes][dead]") {
  const std::string pushing = "fun @g(%x: f64) {\npush[0] %x yield }\n";
  check_rewrite(dead,
                "entry @f fun @f(%x: f64) -> f64 {\n%1 = call @h(%x) : f64\ncall @g(%x)\n%2 = pop[0] : f64 "
                "yield %2 }\n" +
                    pushing + "fun @h(%x: f64) -> f64 {\n%1 = exp %x yield %1 }",
                "entry @f fun @f(%x: f64) -> f64 {\ncall @g(%x)\n%2 = pop[0] : f64 yield %2 }\n" + pushing);
}

// ---- inlining

TEST_CASE("an entry that forwards takes over the body; what is called once is inlined", "[passes][inline]") {
  check_rewrite(inlining,
                "entry @f fun @f(%x: f64) -> f64 {\n%1 = call @g(%x) : f64 yield %1 }\nfun @g(%x: f64) -> "
                "f64 {\n%1 = exp %x yield %1 }",
                "entry @f fun @f(%x: f64) -> f64 {\n%1 = exp %x yield %1 }");
  check_rewrite(inlining,
                "entry @f fun @f(%x: f64) -> f64 {\n%1 = call @g(%x) : f64 yield %1 }\nfun @g(%x: f64) -> "
                "f64 {\n%1 = constant true : bool\n%2 = branch "
                "%1 : f64 {\n%3 = call @g(%x) : f64 yield %3 } else { yield %x } yield %2 }",
                "entry @f fun @f(%x: f64) -> f64 {\n%1 = constant true : bool\n%2 = branch "
                "%1 : f64 {\n%3 = call @f(%x) : f64 yield %3 } else { yield %x } yield %2 }");
  check_rewrite(inlining,
                "entry @f fun @f(%x: f64) -> f64 {\n%1 = call @g(%x) : f64\n%2 = call @twice(%1) : f64\n%3 = "
                "call @twice(%2) : f64 yield %3 }\n"
                "fun @g(%y: f64) -> f64 {\n%1 = exp %y\n%2 = call @h(%1) : f64 yield %2 }\nfun @h(%z: f64) "
                "-> f64 {\n%1 = sin %z yield %1 }\n"
                "fun @twice(%z: f64) -> f64 {\n%1 = cos %z yield %1 }",
                "entry @f fun @f(%x: f64) -> f64 {\n%0 = exp %x\n%1 = sin %0\n%2 = call @twice(%1) : f64\n%3 "
                "= call @twice(%2) : f64 yield %3 }\n"
                "fun @twice(%z: f64) -> f64 {\n%1 = cos %z yield %1 }");
}

// ---- contify

TEST_CASE("a continuation that only calls another is that other; one called once goes to its call",
          "[passes][contify]") {
  check_rewrite(contified,
                "fun @f(%x: f64, %c: bool, %k: cont(f64)) cps {\n%1 = fun (%y: f64) {\njump %k, %y yield "
                "}\nbranch %c {\njump %1, %x yield } else {\n%2 "
                "= exp %x\njump %1, %2 yield } yield }",
                "fun @f(%x: f64, %c: bool, %k: cont(f64)) cps {\nbranch %c {\njump %k, %x yield } else {\n%2 "
                "= exp %x\njump %k, %2 yield } yield }");
  check_rewrite(contified,
                "fun @f(%x: f64, %d: ref f64, %k: cont(f64, ref f64)) cps {\n%1 = fun (%y: f64, %dy: ref "
                "f64) {\n%2 = exp %y\n%3 = ref_new %2 : ref f64\n"
                "jump %k, %2, %3\n%4 = ref_get %3 : f64\nref_add %dy, %4 yield }\n%5 = sin %x\n%6 = ref_new "
                "%5 : ref f64\njump %1, %5, %6\n%7 = "
                "ref_get %6 : f64\nref_add %d, %7 yield }",
                "fun @f(%x: f64, %d: ref f64, %k: cont(f64, ref f64)) cps {\n%5 = sin %x\n%6 = ref_new %5 : "
                "ref f64\n%2 = exp %5\n%3 = ref_new %2 : ref f64\n"
                "jump %k, %2, %3\n%4 = ref_get %3 : f64\nref_add %6, %4\n%7 = ref_get %6 : f64\nref_add %d, "
                "%7 yield }");
}

TEST_CASE("a continuation that calls itself, or is used twice, stays", "[passes][contify]") {
  const std::string text =
      "fun @f(%x: f64, %k: cont(f64)) cps {\n%loop = fun (%y: f64) {\n%c = lt %x, %y\nbranch %c {\n%z = mul "
      "%y, %x\njump %loop, %z yield } else {\njump "
      "%k, %y yield } yield }\njump %loop, %x yield }";
  check_rewrite(contified, text, text);
}

TEST_CASE("a sum at the start of an iteration moves to the end of the iteration before", "[passes][rotate]") {
  // d and c are what the series benchmark's adjoint loop carries.
  const auto loop = [](const std::string& initial, const std::string& state, const std::string& body,
                       const std::string& result) {
    return "entry @f\nfun @f(%c: f64, %g: f64, %d0: f64, %n: i64) -> f64 {\n  %z = constant 0 : i64\n" +
           initial + " while (%k: i64, %x: f64" + state +
           ") {\n    %t = lt %z, %k : bool\n    yield %t\n  } do (%m: i64, " + "%d: f64" + state +
           ") {\n    %o = constant 1 : i64\n    %l = sub %m, %o : i64\n" + body + "  }\n" + result + "}\n";
  };
  const std::string before =
      loop("  %a, %b = loop %n, %d0 : i64, f64", "",
           "    %v = add %d, %g : f64\n    %p = mul %c, %v : f64\n    yield %l, %p\n", "  yield %b\n");
  CHECK(after(passes::retiming, before) == print(*parse(R"(entry @f
fun @f(%c: f64, %g: f64, %d0: f64, %n: i64) -> f64 {
  %z = constant 0 : i64
  %e0 = add %d0, %g : f64
  %a, %b, %last = loop %n, %e0, %d0 : i64, f64, f64 while (%k: i64, %x: f64, %y: f64) {
    %t = lt %z, %k : bool
    yield %t
  } do (%m: i64, %e: f64, %d: f64) {
    %o = constant 1 : i64
    %l = sub %m, %o : i64
    %p = mul %c, %e : f64
    %q = mul %c, %e : f64
    %next = add %q, %g : f64
    yield %l, %next, %p
  }
  yield %last
}
)"),
                                                 {.names = false}));
  // The state is used twice, what is added changes from iteration to iteration, or no product follows.
  for (const char* body : {"    %v = add %d, %g : f64\n    %p = mul %d, %v : f64\n    yield %l, %p\n",
                           "    %h = mul %c, %g : f64\n    %v = add %d, %h : f64\n    %p = mul %c, %v : f64\n"
                           "    yield %l, %p\n",
                           "    %v = add %d, %g : f64\n    %p = sin %v : f64\n    yield %l, %p\n"}) {
    const std::string text = loop("  %a, %b = loop %n, %d0 : i64, f64", "", body, "  yield %b\n");
    CHECK(after(passes::retiming, text) == print(*parse(text), {.names = false}));
  }
}

TEST_CASE("a function that ends with a call of itself is a loop", "[passes][tail_calls]") {
  const auto looped = [](Module& m) { passes::tail_calls(*m.find("f")); };
  // x stays, n and s change from call to call.
  check_rewrite(looped, R"(entry @f
fun @f(%x: f64, %n: i64, %s: f64) -> f64 {
  %z = constant 0 : i64
  %c = le %n, %z : bool
  %r = branch %c : f64 {
    yield %s
  } else {
    %o = constant 1 : i64
    %m = sub %n, %o : i64
    %t = mul %s, %x : f64
    %q = call @f(%x, %m, %t) : f64
    yield %q
  }
  yield %r
}
)",
                R"(entry @f
fun @f(%x: f64, %n: i64, %s: f64) -> f64 {
  %on = constant true : bool
  %none = constant 0 : f64
  %a, %b, %d, %r = loop %on, %n, %s, %none : bool, i64, f64, f64 while (%g: bool, %i: i64, %j: f64, %k: f64) {
    yield %g
  } do (%h: bool, %l: i64, %p: f64, %v: f64) {
    %z = constant 0 : i64
    %c = le %l, %z : bool
    %e, %u, %w, %y = branch %c : bool, i64, f64, f64 {
      %off = constant false : bool
      yield %off, %l, %p, %p
    } else {
      %o = constant 1 : i64
      %m = sub %l, %o : i64
      %t = mul %p, %x : f64
      %more = constant true : bool
      yield %more, %m, %t, %v
    }
    yield %e, %u, %w, %y
  }
  yield %r
}
)");
  // Work is left after the call; a call inside a loop; none at all.
  for (const char* end : {"    %q = call @f(%m) : f64\n    %y = neg %q : f64\n    yield %y\n",
                          "    %q = call @f(%m) : f64\n    %y = call @f(%m) : f64\n    yield %y\n",
                          "    %y = constant 2 : f64\n    yield %y\n"}) {
    const std::string text =
        "entry @f\nfun @f(%n: i64) -> f64 {\n  %z = constant 0 : i64\n  %c = le %n, %z : bool\n  %r = branch "
        "%c : "
        "f64 {\n    %x = constant 1 : f64\n    yield %x\n  } else {\n    %o = constant 1 : i64\n    %m = sub "
        "%n, "
        "%o : i64\n" +
        std::string(end) + "  }\n  yield %r\n}\n";
    CHECK(after(looped, text) == print(*parse(text), {.names = false}));
  }
}

namespace {

void check_well_formed(const Module& m) {
  verify(m);
  const std::string text = print(m, {.locations = true});
  CHECK(print(*parse(text), {.locations = true}) == text);
}

void folding(Module& m) {
  for (Function* f : m.functions()) passes::fold(*f);
}

const std::pair<const char*, Run> single_passes[] = {{"fold", folding},
                                                     {"cse", cse_all},
                                                     {"dead", dead},
                                                     {"inline", inlining},
                                                     {"contify", contified},
                                                     {"simplify", passes::simplify},
                                                     {"inplace", passes::inplace},
                                                     {"loop_fusion", passes::loop_fusion},
                                                     {"invariant_tables", passes::invariant_tables},
                                                     {"store_forwarding", passes::store_forwarding}};

}  // namespace

TEST_CASE("passes keep the meaning of random programs in both forms", "[passes][random]") {
  int compared = 0;
  for (const auto& [name, run] : single_passes) {
    for (unsigned seed = 0; seed < 200; ++seed) {
      Module m;
      ir::test::RandomProgram(m, seed).run();
      verify(m);
      std::optional<std::vector<double>> expected;
      try {
        expected = value(m, {Interpreter::number(0.7)});
      } catch (const std::exception&) {  // endless, or it raises: a pass may drop what raises
      }
      run(m);
      INFO(name << " of program " << seed);
      if (ir::test::has_endless_side(m)) continue;
      REQUIRE_NOTHROW(check_well_formed(m));
      if (!expected) continue;
      ++compared;
      REQUIRE(ir::test::same_numbers(*expected, value(m, {Interpreter::number(0.7)})));
    }
  }
  CHECK(compared > 50);
}

// ---- depth and time

namespace {

/// A chain of `n` operators as a reverse handler stages them: as many continuations, one inside the other.
void nest(Module& m, int n) {
  Function* f = m.add_function("f", {F64, Type::ref(F64), Type::cont({F64, Type::ref(F64)})}, {});
  f->cps = true;
  Block* block = f->body;
  Value *x = f->body->params[0], *dx = f->body->params[1];
  for (int i = 0; i < n; ++i) {
    Builder b(m, block);
    Value* y = b.emit(Opcode::sin_, {x});
    Value* dy = b.op(Opcode::ref_new_, {y}, {Type::ref(F64)})->result();
    Op* k = b.fun({F64, Type::ref(F64)});
    b.op(Opcode::jump_, {k->result(), y, dy});
    Value* g = b.op(Opcode::ref_get_, {dy}, {F64})->result();
    b.op(Opcode::ref_add_, {dx, b.emit(Opcode::mul_, {b.emit(Opcode::cos_, {x}), g})});
    b.yield({});
    block = k->blocks[0];
    x = block->params[0];
    dx = block->params[1];
  }
  Builder b(m, block);
  b.op(Opcode::jump_, {f->body->params[2], x, dx});
  b.yield({});
}

double seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("a nest of 100,000 continuations passes through each pass", "[passes][depth]") {
  for (const auto& [name, run] : single_passes) {
    Module m;
    nest(m, 100000);
    const double t = seconds([&] { run(m); });
    INFO(name << " took " << t << " s");
    CHECK(t < 10);
    if (run == contified || run == Run{passes::simplify}) verify(m);
  }
}

TEST_CASE("passes are linear in straight code", "[passes][depth]") {
  Module m;
  m.entry = m.add_function("f", {F64, Type::tensor(Kind::f64, {ir::dynamic})},
                           {F64, Type::tensor(Kind::f64, {ir::dynamic})});
  Builder b(m, m.entry->body);
  Value *x = m.entry->body->params[0], *t = m.entry->body->params[1];
  Value* n = b.integer(0);
  for (int i = 0; i < 50000; ++i) {
    x = b.emit(Opcode::add_, {b.emit(Opcode::mul_, {x, x}), b.emit(Opcode::mul_, {x, x})});
    x = b.emit(Opcode::mul_, {x, b.number(1)});
    t = b.emit(Opcode::add_, {b.emit(Opcode::set_, {t, n, x}), m.entry->body->params[1]});
    n = b.emit(Opcode::sub_, {b.emit(Opcode::dim_, {t}), b.integer(1)});
  }
  b.yield({x, t});
  for (const auto& [name, run] : single_passes) {
    const double time = seconds([&, r = run] { r(m); });
    INFO(name << " took " << time << " s");
    CHECK(time < 10);
  }
  verify(m);
}

// ---- the pipeline

TEST_CASE("the pipeline runs its passes in order and can leave each out", "[passes][pipeline]") {
  const auto run = [](const PipelineOptions& base) {
    Module m;
    nest(m, 3);
    m.entry = m.add_function("df", {F64}, {F64});
    Builder b(m, m.entry->body);
    Value *x = m.entry->body->params[0], *dx = b.op(Opcode::ref_new_, {x}, {Type::ref(F64)})->result();
    Op* const seed = b.fun({F64, Type::ref(F64)});
    Builder end(m, seed->blocks[0]);
    end.op(Opcode::halt_, {});
    end.op(Opcode::ref_add_, {seed->blocks[0]->params[1], end.number(1)});
    end.yield({});
    b.op(Opcode::call_, {x, dx, seed->result()})->callee = m.functions()[0];
    b.yield({b.op(Opcode::ref_get_, {dx}, {F64})->result()});
    std::string order;
    std::vector<passes::PassTiming> timings;
    PipelineOptions options = base;
    options.verify_each = true;
    options.timings = &timings;
    options.after = [&](std::string_view pass, const Module&) { order += std::string(pass) + " "; };
    passes::run_pipeline(m, options);
    std::string timed;
    for (const passes::PassTiming& t : timings) timed += t.name + " ";
    CHECK(timed == order);
    return order;
  };
  const std::string start = "canonical_loops fixed_arrays scalar_replacement contify unwind simplify tape_narrowing ";
  const std::string loops =
      "lower full_unrolling dead_stores raise reads_first loop_interchange register_promotion loop_fusion "
      "array_contraction "
      "retiming invariant_tables if_conversion store_forwarding index_set_splitting scatter_to_gather join_sums "
      "deforestation dead_fills ";
  const std::string integers = "invariant_integers partial_copies parallel ";
  const std::string panels = "sparse_adjoints predictive_commoning kept_panels ", memory = "overlap inplace tape_coalescing outline merge ";
  CHECK(run({}) == start + loops + integers + panels + memory);
  CHECK(run({.opt_level = 0}).empty());
  CHECK(run({.disabled = {"simplify", "contify"}}) ==
        "canonical_loops fixed_arrays scalar_replacement unwind tape_narrowing " + loops + integers + panels + memory);
  std::string names;
  for (const passes::Pass& p : passes::passes()) {
    names += std::string(p.name) + " ";
    CHECK(!p.what.empty());
    CHECK((" " + run({.disabled = {std::string(p.name)}})).find(" " + std::string(p.name) + " ") ==
          std::string::npos);
  }
  CHECK(names == start + "inline_expansion " + loops + "in_place_stencils invariant_integers partial_copies loop_reversal parallel "
                     "threads vectorise sparse_adjoints predictive_commoning kept_panels window_gather copy_fusion rematerialise kernel_fusion horizontal_fusion late_fills device_scalars reciprocals contract value_checks " + memory);
  CHECK(run({.fused_multiply_add = true}) == start + loops + integers + panels + "reciprocals contract " + memory);
  CHECK(run({.threads = 2}) == start + loops + integers + "threads " + panels + memory);
  CHECK(run({.vector_lanes = 4}) == start + loops + "in_place_stencils " + integers + "vectorise " + panels + memory);
  CHECK_THROWS_WITH(run({.disabled = {"simplfy"}}),
                    "expected the name of a pass (canonical_loops, fixed_arrays, scalar_replacement, contify, unwind, "
                    "simplify, tape_narrowing, inline_expansion, lower, full_unrolling, dead_stores, raise, reads_first, loop_interchange, "
                    "register_promotion, loop_fusion, array_contraction, retiming, invariant_tables, "
                    "if_conversion, store_forwarding, index_set_splitting, scatter_to_gather, join_sums, deforestation, "
                    "dead_fills, in_place_stencils, invariant_integers, partial_copies, loop_reversal, parallel, threads, vectorise, sparse_adjoints, "
                    "predictive_commoning, kept_panels, window_gather, copy_fusion, rematerialise, kernel_fusion, horizontal_fusion, late_fills, device_scalars, reciprocals, contract, value_checks, overlap, inplace, tape_coalescing, outline, merge), got 'simplfy'");
}
