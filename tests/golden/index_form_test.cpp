// Indices as sums of products, and which iteration of a loop an element belongs to.
#include "lantern/compiler/passes/analysis/index_form.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"

namespace lantern::passes {
namespace {

/// for (i = 0; i < n; ++i) for (j = 1; j < nx - 1; ++j) v[%a] = v[%b], where `operations` make %a and %b.
std::string nest(const std::string& operations) {
  return R"(entry @f

fun @f(%v: f64[?], %n: i64, %nx: i64, %m: i64) -> f64[?] {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %two = constant 2 : i64
  %i0, %v0 = loop %zero, %v : i64, f64[?] while (%ic: i64, %vc: f64[?]) {
    %more = lt %ic, %n : bool
    yield %more
  } do (%i: i64, %vb: f64[?]) {
    %last = sub %nx, %one : i64
    %j0, %v1 = loop %one, %vb : i64, f64[?] while (%jc: i64, %vd: f64[?]) {
      %on = lt %jc, %last : bool
      yield %on
    } do (%j: i64, %w: f64[?]) {
      %row = mul %i, %nx : i64
      %k = add %row, %j : i64
)" + operations +
         R"(
      %x = get %w, %b : f64
      %s = set %w, %a, %x : f64[?]
      %jn = add %j, %one : i64
      yield %jn, %s
    }
    %in = add %i, %one : i64
    yield %in, %v1
  }
  yield %v0
}
)";
}

struct Apart {
  bool outer, inner;
  bool operator==(const Apart&) const = default;
};

/// Whose iterations are known to have elements of their own.
Apart apart(const std::string& operations) {
  CAPTURE(operations);
  const auto module = ir::parse(nest(operations));
  ir::verify(*module);
  const std::vector<Op*> loops = loops_in(*module->functions().front());
  REQUIRE(loops.size() == 2);
  std::vector<const Op*> accesses;
  ir::walk(loops[1]->blocks[1], [&](const Op* op) {
    if (op->is(Opcode::get_) || op->is(Opcode::set_)) accesses.push_back(op);
  });
  return {no_loop_carried_dependence(accesses, loops[0]), no_loop_carried_dependence(accesses, loops[1])};
}

TEST_CASE("elements that belong to an iteration", "[analysis]") {
  CHECK(apart("%a = add %k, %zero : i64 %b = add %k, %zero : i64") == Apart{true, true});
  // Neighbours lie in the row, but are other iterations'.
  CHECK(apart("%a = add %k, %zero : i64 %b = add %k, %one : i64") == Apart{true, false});
  CHECK(apart("%a = sub %k, %one : i64 %b = add %k, %one : i64") == Apart{true, false});
  // From row to row they meet: k + 2 is the next row's k - 1 for the last j, that is nx - 2.
  CHECK(apart("%a = add %k, %two : i64 %b = sub %k, %one : i64") == Apart{false, false});
  // The row below: another one than all of this row, whichever iterations.
  CHECK(apart("%a = add %k, %nx : i64 %b = add %k, %zero : i64") == Apart{false, true});
  // The same row above in both.
  CHECK(apart("%a = sub %k, %nx : i64 %b = sub %k, %nx : i64") == Apart{true, true});
  // Rows of another length.
  CHECK(apart("%r = mul %i, %m : i64 %a = add %r, %j : i64 %b = add %a, %zero : i64") == Apart{false, true});
  CHECK(apart("%a = add %i, %zero : i64 %b = add %i, %zero : i64") == Apart{true, false});
  // Columns: j n + i, with i below n.
  CHECK(apart("%c = mul %j, %n : i64 %a = add %c, %i : i64 %b = add %c, %i : i64") == Apart{true, true});
  // Even elements and odd ones.
  CHECK(apart("%d = mul %j, %two : i64 %a = add %d, %one : i64 %b = add %d, %zero : i64") ==
        Apart{false, true});
  CHECK(apart("%d = mul %j, %two : i64 %a = add %d, %two : i64 %b = add %d, %zero : i64") ==
        Apart{false, false});
  // Another row, whichever it is: its elements are those of other rows, and of this row this iteration's own.
  const std::string any_row = "%r = mul %m, %nx : i64 %a = add %k, %zero : i64 ";
  CHECK(apart(any_row + "%b = add %r, %j : i64") == Apart{false, true});
  CHECK(apart(any_row + "%l = add %r, %j : i64 %b = add %l, %one : i64") == Apart{false, false});
  CHECK(apart(any_row + "%l = mul %j, %two : i64 %b = add %r, %l : i64") == Apart{false, false});
  // An odd one among even ones, whichever it is.
  const std::string even = "%d = mul %j, %two : i64 %a = add %d, %zero : i64 %e = mul %m, %two : i64 ";
  CHECK(apart(even + "%b = add %e, %one : i64") == Apart{false, true});
  CHECK(apart(even + "%b = add %e, %two : i64") == Apart{false, false});
  // What is not a sum of products tells nothing.
  CHECK(apart("%q = div %k, %two : i64 %a = add %q, %zero : i64 %b = add %q, %zero : i64") ==
        Apart{false, false});
  CHECK(apart("%q = mul %j, %j : i64 %a = add %q, %zero : i64 %b = add %q, %zero : i64") ==
        Apart{false, false});
}

/// The elements of row i at these columns, of a loop over rows; `operations` make the columns %a and %b.
bool rows_apart(const std::string& condition, const std::string& operations) {
  CAPTURE(condition, operations);
  const auto module = ir::parse(R"(entry @f

fun @f(%v: f64[?], %n: i64, %m: i64, %x: f64) -> f64[?] {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %four = constant 4 : i64
  %least = imax %m, %one : i64
  %end, %v1 = loop %zero, %v : i64, f64[?] while (%ic: i64, %vc: f64[?]) {
    %more = lt %ic, %n : bool
    yield %more
  } do (%i: i64, %w: f64[?]) {
    %row = mul %i, %m : i64
)" + condition + R"(
    %z = branch %c : f64[?] {
)" + operations + R"(
      %k = add %row, %a : i64
      %l = add %row, %b : i64
      %y = set %w, %k, %x : f64[?]
      %y2 = set %y, %l, %x : f64[?]
      yield %y2
    } else {
      yield %w
    }
    %next = add %i, %one : i64
    yield %next, %z
  }
  yield %v1
}
)");
  ir::verify(*module);
  const std::vector<Op*> loops = loops_in(*module->functions().front());
  std::vector<const Op*> accesses;
  ir::walk(loops[0]->blocks[1], [&](const Op* op) {
    if (op->is(Opcode::set_)) accesses.push_back(op);
  });
  REQUIRE(accesses.size() == 2);
  return no_loop_carried_dependence(accesses, loops[0]);
}

TEST_CASE("elements of a row, by what a branch has found", "[analysis]") {
  const std::string first = "%a = add %zero, %zero : i64 ", last = "%b = sub %m, %one : i64";
  const std::string wide = "%c = le %four, %m : bool", narrow = "%c = le %m, %four : bool";
  // The last but one of a row of one column is in the row before.
  const std::string last_but_one = "%b = add %m, %zero : i64 %a = sub %m, %four : i64";
  CHECK(rows_apart(wide, first + last));
  CHECK_FALSE(rows_apart(narrow, first + "%b = add %one, %zero : i64"));
  CHECK(rows_apart(wide, first + "%b = add %one, %zero : i64"));
  CHECK(rows_apart("%c = lt %one, %m : bool", first + "%b = add %one, %zero : i64"));
  CHECK_FALSE(rows_apart("%c = lt %zero, %m : bool", first + "%b = add %one, %zero : i64"));
  CHECK_FALSE(rows_apart(wide, first + "%b = add %four, %zero : i64"));
  CHECK_FALSE(rows_apart(wide, last_but_one));
  CHECK(rows_apart("%d = lt %m, %four : bool %c = lnot %d : bool", first + "%b = add %one, %zero : i64"));
  CHECK_FALSE(
      rows_apart("%d = le %four, %m : bool %c = lnot %d : bool", first + "%b = add %one, %zero : i64"));
  CHECK(rows_apart("%d = lt %zero, %n : bool %e = le %four, %m : bool %c = land %d, %e : bool",
                   first + "%b = add %one, %zero : i64"));
  CHECK_FALSE(rows_apart("%d = lt %zero, %n : bool %e = le %four, %m : bool %c = lor %d, %e : bool",
                         first + "%b = add %one, %zero : i64"));
  // AND is a branch with a constant on one side. OR tells nothing of its second side.
  const auto asked_second = [](const std::string& first_holds, const std::string& constant) {
    return "%d = lt %zero, %n : bool %e = " + first_holds + " %d : bool %c = branch %e : bool { %f = le %four, %m : bool yield %f } " +
           "else { %g = constant " + constant + " : bool yield %g }";
  };
  CHECK(rows_apart(asked_second("lnot", "false"), first + "%b = add %one, %zero : i64"));
  CHECK_FALSE(rows_apart(asked_second("lnot", "true"), first + "%b = add %one, %zero : i64"));
  // What is equal to a number is neither below nor above it.
  CHECK(rows_apart("%c = eq %m, %four : bool", first + "%b = add %one, %zero : i64"));
  CHECK(rows_apart("%d = ne %m, %four : bool %c = lnot %d : bool", first + "%b = add %one, %zero : i64"));
  CHECK_FALSE(rows_apart("%c = ne %m, %four : bool", first + "%b = add %one, %zero : i64"));
  CHECK_FALSE(rows_apart("%c = eq %m, %one : bool", first + "%b = add %one, %zero : i64"));
  // What is larger than the smaller of two is the larger of them: max(m, 1) is m where it is 4 or more.
  CHECK(rows_apart("%c = le %four, %least : bool", first + "%b = sub %least, %one : i64"));
  CHECK_FALSE(rows_apart("%c = le %one, %least : bool", first + "%b = sub %least, %one : i64"));
  // Two unknowns in one fact.
  CHECK(rows_apart("%c = lt %n, %m : bool", first + "%b = add %n, %zero : i64"));
  CHECK_FALSE(rows_apart("%c = le %n, %m : bool", first + "%b = add %n, %zero : i64"));
  // The smaller of m - 1 and m.
  CHECK(rows_apart(wide, first + "%d = sub %m, %one : i64 %b = imin %m, %d : i64"));
  CHECK_FALSE(rows_apart(wide, first + "%d = add %m, %one : i64 %b = imin %m, %d : i64"));
}

TEST_CASE("elements that iterations before or after do not reach", "[analysis]") {
  // %a is written and %b read, in the row of iteration i at column j, or seen from the loop over rows.
  const auto meets = [](const std::string& operations, std::size_t loop, Iteration when) {
    CAPTURE(operations);
    const auto module = ir::parse(nest(operations));
    const std::vector<Op*> loops = loops_in(*module->functions().front());
    const Op *get = nullptr, *set = nullptr;
    ir::walk(loops[1]->blocks[1], [&](const Op* op) {
      if (op->is(Opcode::get_)) get = op;
      if (op->is(Opcode::set_)) set = op;
    });
    return !no_alias(*get, *set, loops[loop], when);
  };
  const std::string to_the_left = "%a = add %k, %zero : i64 %b = sub %k, %one : i64";
  CHECK_FALSE(meets(to_the_left, 1, Iteration::later));
  CHECK_FALSE(meets(to_the_left, 1, Iteration::same));
  CHECK(meets(to_the_left, 1, Iteration::earlier));
  CHECK_FALSE(meets(to_the_left, 0, Iteration::later));  // the next rows begin beyond
  CHECK_FALSE(meets(to_the_left, 0, Iteration::earlier));
  const std::string above = "%a = add %k, %zero : i64 %b = sub %k, %nx : i64";
  CHECK_FALSE(meets(above, 0, Iteration::later));
  CHECK_FALSE(meets(above, 1, Iteration::any));
  CHECK(meets(above, 0, Iteration::earlier));
  const std::string unknown = "%a = add %k, %zero : i64 %b = sub %k, %m : i64";
  for (const Iteration when : {Iteration::earlier, Iteration::same, Iteration::later, Iteration::any}) CHECK(meets(unknown, 0, when));
}

TEST_CASE("sums of products", "[analysis]") {
  const auto module = ir::parse(R"(entry @f

fun @f(%x: i64, %y: i64) -> i64 {
  %c = constant 3 : i64
  %s = add %x, %c : i64
  %d = sub %x, %y : i64
  %p = mul %s, %d : i64
  %q = mul %x, %x : i64
  %r = sub %p, %q : i64
  %n = neg %r : i64
  yield %n
}
)");
  const Block& body = *module->functions().front()->body;
  const Value *x = body.params[0], *y = body.params[1];
  const IndexForm f = index_form(body.ops.back()->operands[0]);
  // -((x + 3)(x - y) - x x) = x y - 3 x + 3 y
  const IndexForm X = IndexForm::of(x), Y = IndexForm::of(y);
  CHECK(f == X * Y - 3 * X + 3 * Y);
  const auto split = f.split(x);
  REQUIRE(split);
  CHECK(split->coefficient == Y - 3);
  CHECK(split->rest == 3 * Y);
  CHECK_FALSE((X * X).split(x));
  CHECK(f.with(y, 2) == 6 - X);
  CHECK((f - f).number() == 0);
  CHECK_FALSE(f.number());
}

}  // namespace
}  // namespace lantern::passes
