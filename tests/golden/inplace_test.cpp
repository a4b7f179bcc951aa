// inplace: which updates work in place, on memory that nobody else sees, and that marks never change a
// result.
#include "lantern/compiler/passes/memory/inplace.hpp"

#include <catch2/catch.hpp>

#include "interpreter.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "random_arrays.hpp"

using namespace lantern;
using namespace lantern::ir;
using ir::test::Interpreter;

namespace {

/// Names of marked operations in order.
std::string marked(const Module& m) {
  std::string names;
  for (const Function* f : m.functions())
    walk(f->body, [&](const Op* op) {
      if (op->in_place && !op->is(Opcode::copy_))
        names += std::string(names.empty() ? "" : " ") + std::string(info(op->code).name);
      if (op->is(Opcode::copy_) && !op->in_place) names += names.empty() ? "copy" : " copy";
    });
  return names;
}

std::string marked_in(const std::string& text) {
  const auto m = parse(text);
  verify(*m);
  passes::inplace(*m);
  verify(*m);
  return marked(*m);
}

const std::string array_function = "entry @f fun @f(%a: f64[?], %i: i64, %x: f64, %c: bool) -> f64[?] {\n";

/// Fills an array in a loop, `iterations` times; the array is the parameter.
std::string filling_loop(const std::string& body) {
  return array_function +
         "%0 = constant 0 : i64\n%1 = constant 1 : i64\n%r, %j = loop %a, %0 : f64[?], i64 while (%s: "
         "f64[?], %j: i64) {\n"
         "%2 = lt %j, %i : bool yield %2 } do (%s: f64[?], %j: i64) {\n%3 = add %j, %1 : i64\n" +
         body + "\nyield %s2, %3 } yield %r }";
}

}  // namespace

TEST_CASE("an update of our own array that is its last use works in place", "[passes][inplace]") {
  CHECK(
      marked_in(array_function +
                "%1 = zeros_like %a\n%2 = set %1, %i, %x\n%3 = add_at %2, %i, %x\n%4 = exp %3 yield %4 }") ==
      "set add_at exp");
  // The argument belongs to the caller.
  CHECK(marked_in(array_function + "%2 = set %a, %i, %x\n%3 = set %2, %i, %x yield %3 }") == "set");
  // The old array is read later.
  CHECK(marked_in(array_function + "%1 = exp %a\n%2 = set %1, %i, %x\n%3 = add %2, %1 yield %3 }") == "add");
  // Only its size is.
  CHECK(marked_in(array_function +
                  "%1 = exp %a\n%2 = set %1, %i, %x\n%3 = zeros_like %1\n%4 = add %2, %3 yield %4 }") ==
        "set add");
  // A part of it is: the part is copied, not the whole; of the whole under another shape there is no such part.
  CHECK(marked_in(array_function +
                  "%1 = exp %a\n%4 = slice %1, %i, %i\n%2 = set %1, %i, %x\n%3 = concat %2, %4 yield %3 }") == "copy set");
  CHECK(marked_in(array_function +
                  "%1 = exp %a\n%4 = slice %1, %i, %i\n%5 = reshape %4, %4\npush[0] %5\n%2 = set %1, %i, %x\n%3 = set %2, %i, %x "
                  "yield %3 }") == "copy set set");
  CHECK(marked_in(array_function +
                  "%1 = exp %a\n%4 = reshape %1, %a\n%2 = set %1, %i, %x\n%3 = concat %2, %4 yield %3 }")
            .empty());
  // A part of the new array is none of the old one; of the caller's array each change is one of a copy.
  CHECK(marked_in(array_function +
                  "%1 = exp %a\n%2 = set %1, %i, %x\n%4 = slice %2, %i, %i\n%3 = concat %2, %4 yield %3 }") == "set");
  CHECK(marked_in(array_function + "%4 = slice %a, %i, %i\n%2 = set %a, %i, %x\n%3 = concat %2, %4 yield %3 }").empty());
  // It is on a tape.
  CHECK(
      marked_in(
          array_function +
          "%1 = exp %a\npush[0] %1\n%2 = set %1, %i, %x\n%3 = pop[0] : f64[?]\n%4 = add %2, %3 yield %4 }") ==
      "add");
  // What was popped may be in use elsewhere.
  CHECK(marked_in(array_function + "%1 = exp %a\npush[0] %1\n%3 = pop[0] : f64[?]\n%4 = exp %3 yield %4 }")
            .empty());
  // The second operand of a sum will do, and one operand twice; not a view of the same memory beside it.
  CHECK(marked_in(array_function + "%1 = exp %a\n%2 = add %a, %1\n%3 = mul %2, %2 yield %3 }") == "add mul");
  CHECK(marked_in(array_function + "%1 = exp %a\n%2 = reshape %1, %a\n%3 = add %1, %2 yield %3 }").empty());
}

TEST_CASE("a constant tensor that several operations change is made for each of them", "[passes][inplace]") {
  const std::string zero = "%0 = constant 0 : f64\n%z = fill %0, %i\n";
  const auto fills = [](const std::string& text) {
    const auto m = parse(text);
    passes::inplace(*m);
    verify(*m);
    std::size_t n = 0;
    walk(m->functions()[0]->body, [&](const Op* op) { n += op->is(Opcode::fill_); });
    return n;
  };
  const std::string two = "%1 = set %z, %i, %x\n%2 = add_at %z, %i, %x\n%3 = add %1, %2 yield %3 }";
  CHECK(marked_in(array_function + zero + two) == "set add_at add");
  CHECK(fills(array_function + zero + two) == 2);
  // One that is read as well stays; one that nothing else changes is not made again.
  const std::string read =
      "%1 = set %z, %i, %x\n%2 = set %z, %i, %x\n%4 = add %1, %2\n%3 = add %4, %z yield %3 }";
  CHECK(marked_in(array_function + zero + read) == "set set add add");
  CHECK(fills(array_function + zero + read) == 3);
  CHECK(fills(array_function + zero + "%1 = set %z, %i, %x yield %1 }") == 1);
  // Of the sides of a branch one runs; of a number that is no constant there is one.
  const std::string branches =
      "%1 = branch %c : f64[?] {\n%2 = set %z, %i, %x yield %2 } else {\n%3 = add_at %z, %i, %x "
      "yield %3 } yield %1 }";
  CHECK(marked_in(array_function + zero + branches) == "set add_at");
  CHECK(fills(array_function + zero + branches) == 1);
  CHECK(marked_in(array_function + "%z = fill %x, %i\n" + two) == "add_at add");
  // Each iteration of a loop has its own.
  CHECK(
      marked_in(filling_loop("%y = constant 0 : f64\n%z = fill %y, %i\n%4 = set %z, %j, %x\n%5 = set %z, %i, "
                             "%x\n%6 = add %4, %5\n%s2 = add %6, %s")) == "set set add add");
}

TEST_CASE("a copy of what nobody reads any more is that itself", "[passes][inplace]") {
  const std::string set = "%2 = copy %1\n%3 = set %2, %i, %x\n";
  CHECK(marked_in(array_function + "%1 = exp %a\n" + set + "yield %3 }") == "set");
  CHECK(marked_in(array_function + "%1 = exp %a\n" + set + "%4 = add %3, %1 yield %4 }") == "copy set add");
  CHECK(marked_in(array_function + "%1 = reshape %a, %a\n" + set + "yield %3 }") == "copy set");
  // In an iteration of a loop: the state is that of the iteration alone.
  CHECK(marked_in(filling_loop("%t = copy %s\n%s2 = set %t, %j, %x")) == "copy set");
  const std::string both =
      filling_loop("%t = copy %s\n%u = set %t, %j, %x\n%y = get %s, %i\n%s2 = set %u, %j, %y");
  CHECK(marked_in(both).ends_with("copy set set"));
}

TEST_CASE("branches hand memory on; what one side does the other does not see", "[passes][inplace]") {
  CHECK(marked_in(array_function + "%1 = exp %a\n%2 = branch %c : f64[?] {\n%3 = set %1, %i, %x yield %3 } "
                                   "else { yield %1 }\n%4 = set "
                                   "%2, %i, %x yield %4 }") == "set set");
  CHECK(marked_in(array_function + "%1 = exp %a\n%2 = branch %c : f64[?] {\n%3 = set %1, %i, %x yield %3 } "
                                   "else { yield %1 }\n%4 = add "
                                   "%2, %1 yield %4 }")
            .empty());
  CHECK(marked_in(array_function + "%2 = branch %c : f64[?] {\n%3 = exp %a yield %3 } else { yield %a }\n%4 "
                                   "= set %2, %i, %x yield %4 }")
            .empty());
  CHECK(marked_in(array_function + "%1 = exp %a\n%2, %5 = branch %c : f64[?], f64[?] {\n%3 = exp %a yield "
                                   "%3, %3 } else { yield %1, %1 }\n%4 = "
                                   "set %2, %i, %x\n%6 = add %4, %5 yield %6 }") == "add");
}

TEST_CASE("loops update their state in place, after one copy where it is not ours", "[passes][inplace]") {
  CHECK(marked_in(filling_loop("%s2 = set %s, %j, %x")) == "copy set");
  CHECK(marked_in(filling_loop("%y = get %s, %j\n%s2 = branch %c : f64[?] {\n%4 = add_at %s, %j, %y yield %4 "
                               "} else { yield %s }")) == "copy add_at");
  // The next iteration would not see the old array.
  CHECK(marked_in(filling_loop("%t = exp %s\n%4 = set %a, %j, %x\n%s2 = add %4, %s")) == "add");
  CHECK(marked_in(filling_loop("push[0] %s\n%s2 = set %s, %j, %x")).empty());
  CHECK(marked_in(filling_loop("%s2 = set %s, %j, %x\npush[0] %s2")).empty());
  // Memory of our own needs no copy.
  CHECK(marked_in(array_function + "%0 = constant 0 : i64\n%z = zeros_like %a\n%r = loop %z : f64[?] while "
                                   "(%s: f64[?]) { yield %c } do (%s: "
                                   "f64[?]) {\n%t = set %s, %i, %x yield %t } yield %r }") == "set");
}

TEST_CASE("what follows a continuation may run again", "[passes][inplace]") {
  // Each part has its own array, or the one that the part before has made and others may see.
  CHECK(marked_in(array_function + "%1 = zeros_like %a\n%2 = set %1, %i, %x\nhalt\n%3 = zeros_like %a\n"
                                   "%4 = set %3, %i, %x\nyield %4 }") == "set set");
  CHECK(marked_in(array_function + "%1 = zeros_like %a\nhalt\n%2 = set %1, %i, %x\nyield %2 }").empty());
  const std::string loop = "%0 = constant 0 : i64\n%r = loop %1 : f64[?] while (%s: f64[?]) { yield %c } do (%s: f64[?]) {\n"
                           "%t = set %s, %i, %x yield %t }\n";
  CHECK(marked_in(array_function + "halt\n%1 = zeros_like %a\n" + loop + "yield %r }") == "set");
  CHECK(marked_in(array_function + "%1 = zeros_like %a\nhalt\n" + loop + "yield %r }") == "copy set");
}

TEST_CASE("arrays are passed to functions and back", "[passes][inplace]") {
  const std::string update =
      "fun @g(%t: f64[?], %i: i64, %x: f64) -> f64[?] {\n%1 = set %t, %i, %x yield %1 }";
  CHECK(marked_in(
            array_function +
            "%1 = exp %a\n%2 = call @g(%1, %i, %x) : f64[?]\n%3 = call @g(%2, %i, %x) : f64[?] yield %3 }" +
            update) == "set");
  CHECK(marked_in(
            array_function +
            "%1 = exp %a\n%2 = call @g(%1, %i, %x) : f64[?]\n%3 = call @g(%a, %i, %x) : f64[?] yield %3 }" +
            update)
            .empty());
  CHECK(marked_in(array_function +
                  "%1 = exp %a\n%2 = call @g(%1, %i, %x) : f64[?]\n%3 = exp %2\n%4 = add %3, %1 yield %4 }" +
                  update) == "exp add");
  // A function that only reads does not keep its argument.
  CHECK(marked_in(array_function + "%1 = exp %a\n%2 = call @g(%1) : f64\n%3 = set %1, %i, %2 yield %3 }fun "
                                   "@g(%t: f64[?]) -> f64 {\n%1 = sum %t yield %1 }") == "set");
  CHECK(marked_in(array_function + "%1 = exp %a\n%2 = call @g(%1) : f64[?]\n%3 = set %1, %i, %x\n%4 = add "
                                   "%3, %2 yield %4 }fun @g(%t: f64[?]) -> f64[?] { yield %t }") == "add");
  // Recursion hands the array down and up.
  CHECK(marked_in(array_function + "%1 = exp %a\n%2 = call @g(%1, %i, %c) : f64[?] yield %2 }fun @g(%t: "
                                   "f64[?], %i: i64, %c: bool) -> f64[?] {\n"
                                   "%r = branch %c : f64[?] {\n%1 = get %t, %i\n%2 = set %t, %i, %1\n%3 = "
                                   "call @g(%2, %i, %c) : f64[?] yield %3 } else { yield %t } yield %r }") ==
        "set");
}

TEST_CASE("a loop that updates an array makes one", "[passes][inplace]") {
  const auto m = parse(filling_loop("%s2 = set %s, %j, %x"));
  const Interpreter::Items arguments{Interpreter::tensor({100}), Interpreter::integer(100),
                                     Interpreter::number(2), Interpreter::integer(1, Bool)};
  Interpreter before, after_pass;
  const auto expected = before.run(*m, arguments);
  CHECK(before.allocations() == 100);
  passes::inplace(*m);
  CHECK(ir::test::same_numbers(expected, after_pass.run(*m, arguments)));
  CHECK(after_pass.allocations() == 1);
  CHECK(std::vector<double>(100) == std::vector<double>(arguments[0].data(), arguments[0].data() + 100));
}

TEST_CASE("a loop copies the part that it reads of an array to which it adds", "[passes][inplace]") {
  const auto m = parse(filling_loop("%4 = slice %s, %0, %1\n%5 = slice %s, %1, %i\n%6 = dim[0] %4\n%7 = constant 0 : i64\n"
                                    "%k, %s2 = loop %7, %s : i64, f64[?] while (%h: i64, %t: f64[?]) {\n"
                                    "%8 = lt %h, %6 : bool yield %8 } do (%h: i64, %t: f64[?]) {\n"
                                    "%9 = get %4, %h\n%10 = mul %9, %x\n%12 = get %5, %h\n%13 = add %10, %12\n%11 = add_at %t, %j, %13\n%14 = add %h, %1 yield %14, %11 }"));
  const Interpreter::Items arguments{Interpreter::tensor({100}, std::vector<double>(100, 0.01)), Interpreter::integer(100),
                                     Interpreter::number(0.5), Interpreter::integer(1, Bool)};
  const auto expected = Interpreter().run(*m, arguments);
  passes::inplace(*m);
  verify(*m);
  CHECK(marked(*m) == "copy copy copy add_at");  // the caller's, and both parts in each iteration
  CHECK(ir::test::same_numbers(expected, Interpreter().run(*m, arguments)));
}

TEST_CASE("marks never change a result", "[passes][inplace]") {
  std::size_t marks = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    Module m;
    ir::test::RandomArrays(m, seed);
    verify(m);
    const Interpreter::Items arguments{Interpreter::tensor({4}, {1, 2, 3, 4}),
                                       Interpreter::tensor({4}, {5, 6, 7, 8}), Interpreter::integer(2)};
    std::vector<double> expected;
    try {
      expected = Interpreter().run(m, arguments);
    } catch (const ir::test::Endless&) {
      continue;
    }
    if (seed % 2) passes::simplify(m);
    verify(m);
    CHECK(ir::test::same_numbers(expected, Interpreter().run(m, arguments)));
    passes::inplace(m);
    verify(m);
    INFO("seed " << seed << "\n" << print(m));
    REQUIRE(ir::test::same_numbers(expected, Interpreter().run(m, arguments)));
    REQUIRE(arguments[0].data()[0] == 1);
    marks += marked(m).size();
  }
  CHECK(marks > 4000);
}
