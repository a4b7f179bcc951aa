// parallel and threads: which loops say that their iterations may run in any order, what they become when threads
// share them out, and what is said of them.
#include "lantern/compiler/passes/schedule/parallel.hpp"

#include <catch2/catch.hpp>

#include "golden.hpp"
#include "lantern/compiler/passes/schedule/threads.hpp"
#include "lantern/compiler/passes/support/remarks.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using lantern::test::check_golden;

namespace {

/// Before, which loops are parallel, after they are shared out, remarks; texts read back to the same graph.
void check_pass(const std::string& name, const std::string& text, int threads = 2) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  std::string shown = ir::print(*module);
  const passes::Remarks remarks;
  passes::parallel(*module);
  ir::verify(*module);
  const std::string marked = ir::print(*module);
  passes::parallelise(*module, threads);
  ir::verify(*module);
  const std::string after = ir::print(*module);
  shown += "\n; after parallel\n" + marked + "\n; after threads, " + std::to_string(threads) + " of them\n" +
           after + "\n";
  for (const passes::Remark& r : remarks.all()) shown += "; " + r.text + "\n";
  check_golden("parallel/" + name + ".ir", shown);
  for (const std::string& t : {marked, after}) CHECK(ir::print(*ir::parse(t)) == t);
}

/// What a pass says, "parallel" or "threads".
std::string remarks_of(std::string_view pass, const std::string& text) {
  const auto module = ir::parse(text);
  const passes::Remarks remarks;
  passes::parallel(*module);
  passes::parallelise(*module, 2);
  ir::verify(*module);
  std::string all;
  for (const passes::Remark& r : remarks.all())
    if (r.pass == pass) all += r.text + "\n";
  return all;
}
std::string order_of(const std::string& text) { return remarks_of("parallel", text); }

/// A loop over %n iterations with state %s, of a body that gives %next.
std::string loop(const std::string& type, const std::string& start, const std::string& body,
                 const std::string& bound = "%n") {
  return "entry @f\nfun @f(%n: i64, %a: f64[?], %x: f64) -> " + type +
         " {\n  %zero = constant 0 : i64\n  %one = constant 1 : i64\n  %hundred = constant 100 : i64\n" +
         start + "  %last, %end = loop %zero, %start : i64, " + type + " while (%j: i64, %t: " + type +
         ") {\n    %more = lt %j, " + bound + "\n    yield %more\n  } do (%i: i64, %s: " + type + ") {\n" +
         body + "    %following = add %i, %one\n    yield %following, %next\n  }\n  yield %end\n}\n";
}
const std::string number = "  %start = constant 0 : f64\n";
const std::string addition = "    %e = get %a, %i\n    %v = exp %e\n    %next = add %s, %v\n";

}  // namespace

TEST_CASE("parallel: a sum", "[passes][parallel]") { check_pass("sum", loop("f64", number, addition)); }

TEST_CASE("parallel: rows, a table and a counter in three threads", "[passes][parallel]") {
  check_pass("rows", R"(entry @f
fun @f(%n: i64, %a: f64[?], %at: i64[?], %table: f64[?]) -> f64[?], f64[?], i64 {
  %zero = constant 0 : i64
  %nothing = constant 0 : f64
  %one = constant 1 : i64
  %three = constant 3 : i64
  %rows = fill %nothing, %n : f64[?]
  %end, %out, %sums, %count = loop %one, %rows, %table, %zero : i64, f64[?], f64[?], i64 while (%j: i64, %r0: f64[?], %t0: f64[?], %c0: i64) {
    %more = lt %j, %n
    yield %more
  } do (%i: i64, %r: f64[?], %t: f64[?], %c: i64) {
    %x = get %a, %i
    %y = sin %x
    %r1 = set %r, %i, %y
    %k = get %at, %c
    %t1 = add_at %t, %k, %y
    %next = add %i, %one
    %c1 = add %c, %three
    yield %next, %r1, %t1, %c1
  }
  %all = add %end, %count
  yield %out, %sums, %all
}
)",
             3);
}

TEST_CASE("parallel: what it says of loops", "[passes][parallel]") {
  CHECK(order_of(loop("f64", number, addition)) == "is parallel: its iterations may run in any order\n");
  CHECK(remarks_of("threads", loop("f64", number, addition)) ==
        "forks into 2 threads from about 322639 iterations on\n");
  CHECK(remarks_of("threads", loop("f64", number, addition, "%hundred")) ==
        "does not fork: its 100 iterations are too little work\n");
  CHECK(remarks_of("threads", loop("f64", number, "    %next = exp %s\n")) ==
        "does not fork: it is not parallel\n");
  CHECK(order_of(loop("f64", number, "    %next = exp %s\n")) ==
        "is not parallel: an iteration needs 's' of the iteration before, from which it is computed\n");
  CHECK(order_of(loop("f64", number, "    print %x, \"x\"\n" + addition)) ==
        "is not parallel: it prints, which is to be in order\n");
  CHECK(order_of(
            loop("f64[?]", "  %start = copy %a\n", "    %e = get %s, %zero\n    %next = set %s, %i, %e\n")) ==
        "is not parallel: an iteration needs 's' of the iteration before: the element that is read may be one that "
        "another iteration "
        "sets; to read what was there before the loop, read from a copy, s_before = s\n");
  CHECK(order_of(loop("f64", number, "    push[0] %s\n    %next = add %s, %x\n")) ==
        "is not parallel: an iteration needs 's' of the iteration before, from which it is computed\n");
}

TEST_CASE("parallel: the largest, the smallest and whether all are", "[passes][parallel]") {
  const std::string take = "    %e = get %a, %i\n    %v = exp %e\n";
  check_pass("largest", loop("f64", number, take + "    %next = max %s, %v\n"));
  const auto forks = [&](const std::string& type, const std::string& start, const std::string& body) {
    return remarks_of("threads", loop(type, start, take + body)).starts_with("forks into 2 threads");
  };
  CHECK(forks("f64", number, "    %next = min %v, %s\n"));
  CHECK(forks("bool", "  %start = constant true : bool\n",
              "    %good = lt %x, %v\n    %next = land %s, %good\n"));
  CHECK(forks("i64", "  %start = constant 0 : i64\n", "    %k = cast[i64] %v\n    %next = imax %s, %k\n"));
  // The larger of what is then added to depends on the order.
  CHECK_FALSE(forks("f64", number, "    %m = max %s, %v\n    %next = add %m, %x\n"));
  CHECK_FALSE(forks("f64", number, "    %m = max %s, %v\n    %next = min %m, %x\n"));
  CHECK_FALSE(forks("f64", number, "    %w = mul %s, %v\n    %next = max %s, %w\n"));
}

TEST_CASE("parallel: a team that does not stand together is refused", "[passes][parallel]") {
  const std::string text = R"(entry @f
fun @f(%x: f64) -> f64 {
  %a = call[fork 2 2] @g(%x) : f64
  %b = add %a, %x
  %c = call @g(%b) : f64
  yield %c
}
fun @g(%x: f64) -> f64 {
  %y = sin %x
  yield %y
}
)";
  CHECK_THROWS_WITH(ir::verify(*ir::parse(text)),
                    Catch::Contains("expected a team of 2 calls of one function, in a row"));
  CHECK_THROWS_WITH(ir::parse("entry @f\nfun @f() {\n  call[fork 1] @f()\n  yield\n}\n"),
                    Catch::Contains("expected a number of calls"));
}
