// dead_fills: which loops start from memory without values, and which must not.
#include "lantern/compiler/passes/array/dead_fills.hpp"

#include <catch2/catch.hpp>

#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"
#include "lantern/tensor.hpp"

using namespace lantern;

namespace {

/// A function of n with one loop that starts from a filled tensor, of a body that sets it in %4.
std::string loop(const std::string& start, const std::string& type, const std::string& body,
                 const std::string& from = "0") {
  return "entry @f\n\nfun @f(%1: i64, %2: f64) -> " + type + " {\n  %3 = constant " + from + " : i64\n" +
         start + "  %11, %12 = loop %3, %10 : i64, " + type + " while (%13: i64, %14: " + type +
         ") {\n    %15 = lt %13, %1 : bool\n    yield %15\n  } do (%16: i64, %17: " + type + ") {\n" + body +
         "    %20 = constant 1 : i64\n    %21 = add %16, %20 : i64\n    yield %21, %18\n  }\n  yield "
         "%12\n}\n";
}

bool unfilled(const std::string& text) {
  const auto module = ir::parse(text);
  passes::dead_fills(*module);
  ir::verify(*module);
  return ir::print(*module).find("undef") != std::string::npos;
}

const std::string row = "  %9 = constant 0 : f64\n  %10 = fill %9, %1 : f64[?]\n";

}  // namespace

TEST_CASE("dead_fills: an array that is set from end to end", "[passes]") {
  const auto module = ir::parse(loop(row, "f64[?]", "    %18 = set %17, %16, %2 : f64[?]\n"));
  passes::dead_fills(*module);
  CHECK(ir::print(*module) == R"(entry @f

fun @f(%1: i64, %2: f64) -> f64[?] {
  %3 = constant 0 : i64
  %4 = undef : f64
  %5 = fill %4, %1 : f64[?]
  %6, %7 = loop %3, %5 : i64, f64[?] while (%8: i64, %9: f64[?]) {
    %10 = lt %8, %1 : bool
    yield %10
  } do (%11: i64, %12: f64[?]) {
    %13 = set %12, %11, %2 : f64[?]
    %14 = constant 1 : i64
    %15 = add %11, %14 : i64
    yield %15, %13
  }
  yield %7
}
)");
}

TEST_CASE("dead_fills: zeros to which each iteration adds an element, also from the last to the first",
          "[passes]") {
  const auto module = ir::parse(R"(entry @f

fun @f(%1: f64[?], %2: f64) -> f64[?] {
  %3 = dim[0] %1 : i64
  %4 = constant 0 : i64
  %5 = zeros_like %1 : f64[?]
  %6, %7 = loop %3, %5 : i64, f64[?] while (%8: i64, %9: f64[?]) {
    %10 = lt %4, %8 : bool
    yield %10
  } do (%11: i64, %12: f64[?]) {
    %13 = constant 1 : i64
    %14 = sub %11, %13 : i64
    %15 = add_at %12, %14, %2 : f64[?]
    yield %14, %15
  }
  yield %7
}
)");
  passes::dead_fills(*module);
  ir::verify(*module);
  const std::string text = ir::print(*module);
  CHECK(text.find("undef") != std::string::npos);
  CHECK(text.find("set %") != std::string::npos);
  CHECK(text.find("add_at") == std::string::npos);
}

TEST_CASE("dead_fills: what may be left or read keeps its value", "[passes]") {
  CHECK(unfilled(loop(row, "f64[?]", "    %18 = set %17, %16, %2 : f64[?]\n")));
  SECTION("a loop that begins later") {
    CHECK_FALSE(unfilled(loop(row, "f64[?]", "    %18 = set %17, %16, %2 : f64[?]\n", "1")));
  }
  SECTION("an array of another size") {
    CHECK_FALSE(
        unfilled(loop("  %8 = constant 9 : i64\n  %9 = constant 0 : f64\n  %10 = fill %9, %8 : f64[?]\n",
                      "f64[?]", "    %18 = set %17, %16, %2 : f64[?]\n")));
  }
  SECTION("another element than the iteration's") {
    CHECK_FALSE(unfilled(loop(row, "f64[?]", "    %18 = set %17, %3, %2 : f64[?]\n")));
  }
  SECTION("an element that is read") {
    CHECK_FALSE(unfilled(
        loop(row, "f64[?]", "    %22 = get %17, %16 : f64\n    %18 = set %17, %16, %22 : f64[?]\n")));
  }
  SECTION("an element that is added to something, or twice") {
    const std::string add = "    %18 = add_at %17, %16, %2 : f64[?]\n";
    CHECK(unfilled(loop(row, "f64[?]", add)));
    CHECK_FALSE(unfilled(loop("  %9 = constant 1 : f64\n  %10 = fill %9, %1 : f64[?]\n", "f64[?]", add)));
    CHECK_FALSE(unfilled(loop(row, "f64[?]",
                              "    %22 = add_at %17, %16, %2 : f64[?]\n    %18 = add_at %22, "
                              "%16, %2 : f64[?]\n")));
    CHECK_FALSE(unfilled(loop(row, "f64[?]",
                              "    %22 = set %17, %16, %2 : f64[?]\n    %18 = add_at %22, "
                              "%16, %2 : f64[?]\n")));
  }
  SECTION("an update in a branch") {
    CHECK_FALSE(unfilled(
        loop(row, "f64[?]",
             "    %22 = lt %3, %16 : bool\n    %18 = branch %22 : f64[?] {\n      %23 = set %17, %16, %2 : "
             "f64[?]\n      yield %23\n    } else {\n      yield %17\n    }\n")));
  }
}

TEST_CASE("dead_fills: a matrix, all of whose columns are set", "[passes]") {
  const std::string matrix =
      "  %7 = constant 2 : i64\n  %9 = constant 0 : f64\n  %10 = fill %9, %1, %7 : f64[?,?]\n";
  const auto set = [](const char* to, const char* from, const char* column) {
    return std::string("    ") + to + " = set " + from + ", %16, " + column + ", %2 : f64[?,?]\n";
  };
  const std::string zero = "    %30 = constant 0 : i64\n", one = "    %31 = constant 1 : i64\n";
  CHECK(unfilled(loop(matrix, "f64[?,?]", zero + one + set("%22", "%17", "%30") + set("%18", "%22", "%31"))));
  CHECK_FALSE(unfilled(loop(matrix, "f64[?,?]", one + set("%22", "%17", "%31") + set("%18", "%22", "%31"))));
  CHECK_FALSE(unfilled(loop(matrix, "f64[?,?]", one + set("%18", "%17", "%31"))));
}

TEST_CASE("dead_fills: rows of which loops set ranges", "[passes]") {
  // Each row of 5: `first` elements from 0 on, and `second` from `from` on.
  const auto ranges = [](int first, int from, int second) {
    const auto inner = [](const char* index, const char* row, const char* bound, const std::string& place) {
      const std::string i = index;
      return "    " + i + "0, " + i + "1 = loop %3, " + row + " : i64, f64[?,5] while (" + i + "2: i64, " + i +
             "3: f64[?,5]) {\n      " + i + "4 = lt " + i + "2, " + bound + " : bool\n      yield " + i + "4\n    } do (" + i +
             "5: i64, " + i + "6: f64[?,5]) {\n" + place + "      " + i + "8 = set " + i + "6, %16, " + i +
             "7, %2 : f64[?,5]\n      " + i + "9 = add " + i + "5, %31 : i64\n      yield " + i + "9, " + i + "8\n    }\n";
    };
    const auto number = [](const char* name, int n) {
      return std::string("    ") + name + " = constant " + std::to_string(n) + " : i64\n";
    };
    const std::string body = number("%30", 0) + number("%31", 1) + number("%32", first) + number("%33", from) +
                             number("%34", second) + inner("%4", "%17", "%32", "      %47 = add %45, %30 : i64\n") +
                             inner("%5", "%41", "%34", "      %57 = add %55, %33 : i64\n");
    std::string text = loop("  %7 = constant 5 : i64\n  %9 = constant 0 : f64\n  %10 = fill %9, %1, %7 : f64[?,5]\n",
                            "f64[?,5]", body);
    text.replace(text.rfind("%18"), 3, "%51");
    return text;
  };
  CHECK(unfilled(ranges(2, 2, 3)));
  CHECK(unfilled(ranges(4, 4, 1)));
  CHECK_FALSE(unfilled(ranges(2, 2, 2)));  // the last element is left
  CHECK_FALSE(unfilled(ranges(2, 3, 2)));  // one in between
  CHECK_FALSE(unfilled(ranges(3, 1, 2)));  // two are set twice
  CHECK_FALSE(unfilled(ranges(2, 2, 0)));
}

namespace {

using Matrix = Rep<Tensor<double, dyn, dyn>>;

/// i + j, by rows or by columns.
Matrix sums(Rep<int64_t> m, Rep<int64_t> n) {
  return FOR(0, m, fill(Rep<double>(7.0), m, n), [&](Rep<int64_t> i, Matrix a) {
    return FOR(0, n, a, [&](Rep<int64_t> j, Matrix b) { return b.set(i, j, cast<double>(i + j)); });
  });
}
/// The same, where the rows are written again and again: with no columns to do that, they stay as they were.
Matrix last_sum(Rep<int64_t> m, Rep<int64_t> n) {
  return FOR(0, m, fill(Rep<double>(7.0), n, 1), [&](Rep<int64_t> i, Matrix a) {
    return FOR(0, n, a, [&](Rep<int64_t> j, Matrix b) { return b.set(j, 0, cast<double>(i + j)); });
  });
}

}  // namespace

TEST_CASE("dead_fills: loops in loops", "[passes]") {
  for (const Target target : {Target::c, Target::cpp}) {
    const auto f = compile(sums, {.target = target});
    CHECK(f.source("ir").find("undef") != std::string::npos);
    CHECK(f(2, 3).data == std::vector<double>{0, 1, 2, 1, 2, 3});
    CHECK(f(2, 0).data.empty());
    const auto g = compile(last_sum, {.target = target});
    CHECK(g.source("ir").find("undef") == std::string::npos);
    CHECK(g(3, 2).data == std::vector<double>{2, 3});
    CHECK(g(0, 2).data == std::vector<double>{7, 7});
  }
}

TEST_CASE("dead_fills: derivatives of arrays made by loops", "[passes]") {
  using Array1 = Rep<Array<double>>;
  const auto squares = [](Array1 x) {
    const Array1 y = FOR(0, x.size(), fill(Rep<double>(0.0), x.size()),
                         [&](Rep<int64_t> i, Array1 a) { return a.set(i, x[i] * x[i]); });
    return FOR(0, x.size(), 0.0,
               [&](Rep<int64_t> i, Rep<double> s) { return s + y[i] * cast<double>(i + 1); });
  };
  const std::vector<double> x{1, 2, 3}, seed{1, 0, 2};
  for (const Target target : {Target::c, Target::cpp}) {
    CHECK(compile(grad(squares), {.target = target})(x) == std::vector<double>{2, 8, 18});
    CHECK(std::get<1>(compile(jvp(squares), {.target = target})(x, seed)) == 38);
  }
}

TEST_CASE("dead_fills: parts of a dimension of any size that follow each other", "[passes]") {
  // A row for each i: elements from 0 to below a, then from `second` on so many as `count` says.
  const auto rows = [](const std::string& update, const std::string& second, const std::string& count, const std::string& size,
                       const std::string& between = "") {
    const auto part = [&](const std::string& name, const std::string& state, const std::string& bound, const std::string& at) {
      return "%" + name + "i, %" + name + " = loop %0, %" + state + " : i64, f64[?,?] while (%" + name + "h: i64, %" + name +
             "g: f64[?,?]) {\n%" + name + "c = lt %" + name + "h, " + bound + " : bool\nyield %" + name + "c\n} do (%" + name +
             "j: i64, %" + name + "t: f64[?,?]) {\n%" + name + "k = add %" + name + "j, " + at + " : i64\n%" + name + "s = " +
             update + " %" + name + "t, %i, %" + name + "k, %x : f64[?,?]\n%" + name + "n = add %" + name + "j, %1 : i64\nyield %" +
             name + "n, %" + name + "s\n}\n";
    };
    return "entry @f\nfun @f(%p: f64[?], %q: f64[?], %m: i64, %x: f64) -> f64[?,?] {\n%0 = constant 0 : i64\n%1 = constant 1 : i64\n"
           "%a = dim[0] %p : i64\n%b = dim[0] %q : i64\n%ab = add %a, %b : i64\n%mb = add %m, %b : i64\n%z = constant 0 : f64\n"
           "%w = fill %z, %m, " + size + " : f64[?,?]\n%o, %r = loop %0, %w : i64, f64[?,?] while (%e: i64, %v: f64[?,?]) {\n"
           "%d = lt %e, %m : bool\nyield %d\n} do (%i: i64, %t: f64[?,?]) {\n" + part("A", "t", "%a", "%0") + between +
           part("B", "A", count, second) + "%y = add %i, %1 : i64\nyield %y, %B\n}\nyield %r\n}";
  };
  CHECK(unfilled(rows("set", "%a", "%b", "%ab")));
  CHECK(unfilled(rows("add_at", "%a", "%b", "%ab")));
  CHECK(!unfilled(rows("set", "%b", "%b", "%ab")));     // from another place on
  CHECK(!unfilled(rows("set", "%a", "%a", "%ab")));     // another number of them
  CHECK(!unfilled(rows("set", "%a", "%b", "%mb")));     // of another size
  CHECK(!unfilled(rows("set", "%a", "%m", "%ab")));     // m may be negative
  CHECK(!unfilled(rows("add_at", "%0", "%b", "%b")));   // some twice
  CHECK(!unfilled(rows("set", "%a", "%b", "%ab", "%l = get %A, %i, %0 : f64\n")));  // read before all of it is there
}

TEST_CASE("dead_fills: an element may be read again once it is set", "[passes]") {
  CHECK(unfilled(loop(row, "f64[?]", "    %18 = add_at %17, %16, %2 : f64[?]\n    %19 = get %18, %16 : f64\n")));
  CHECK(!unfilled(loop(row, "f64[?]", "    %18 = add_at %17, %16, %2 : f64[?]\n    %19 = get %18, %3 : f64\n")));
  CHECK(!unfilled(loop(row, "f64[?]", "    %18 = add_at %17, %16, %2 : f64[?]\n    %19 = get %17, %16 : f64\n")));
}

TEST_CASE("dead_fills: parts that loops write one after the other", "[passes]") {
  // Elements 0 and 1 of each row, then from `from` on those that are left; what is read then goes to a vector.
  const auto parts = [](const std::string& from, const std::string& read, const std::string& between = "",
                        const std::string& last = "%B") {
    const auto part = [](const std::string& name, const std::string& state, const std::string& bound, const std::string& at) {
      return "%" + name + "i, %" + name + " = loop %0, " + state + " : i64, f64[?,5] while (%" + name + "h: i64, %" + name +
             "g: f64[?,5]) {\n%" + name + "c = lt %" + name + "h, " + bound + " : bool\nyield %" + name + "c\n} do (%" + name +
             "j: i64, %" + name + "t: f64[?,5]) {\n%" + name + "k = add %" + name + "j, " + at + " : i64\n%" + name +
             "s = set %" + name + "t, %i" + name + ", %" + name + "k, %x : f64[?,5]\n%" + name + "n = add %" + name +
             "j, %1 : i64\nyield %" + name + "n, %" + name + "s\n}\n";
    };
    return "entry @f\nfun @f(%m: i64, %x: f64, %v: f64[?]) -> f64[?,5], f64[?] {\n%0 = constant 0 : i64\n%1 = constant 1 : i64\n"
           "%2 = constant 2 : i64\n%3 = constant 3 : i64\n%5 = constant 5 : i64\n%z = constant 0 : f64\n"
           "%w = fill %z, %m, %5 : f64[?,5]\n"
           "%o, %r = loop %0, %w : i64, f64[?,5] while (%e: i64, %u: f64[?,5]) {\n%d = lt %e, %m : bool\nyield %d\n"
           "} do (%iA: i64, %t: f64[?,5]) {\n" + part("A", "%t", "%2", "%0") + "%y = add %iA, %1 : i64\nyield %y, %A\n}\n" + between +
           "%oo, %rr, %vv = loop %0, %r, %v : i64, f64[?,5], f64[?] while (%ee: i64, %uu: f64[?,5], %ww: f64[?]) {\n"
           "%dd = lt %ee, %m : bool\nyield %dd\n} do (%iB: i64, %tt: f64[?,5], %l: f64[?]) {\n" + part("B", "%tt", "%3", from) +
           "%n = sub %m, %1 : i64\n%n2 = sub %n, %iB : i64\n" + read + "%q = set %l, %iB, %a : f64[?]\n"
           "%yy = add %iB, %1 : i64\nyield %yy, " + last + ", %q\n}\nyield %rr, %vv\n}";
  };
  CHECK(unfilled(parts("%2", "%a = get %B, %iB, %1 : f64\n")));
  CHECK(unfilled(parts("%2",
                       "%a = get %B, %iB, %1 : f64\n%Ci, %C = loop %0, %B : i64, f64[?,5] while (%Ch: i64, %Cg: f64[?,5]) {\n"
                       "%Cc = lt %Ch, %5 : bool\nyield %Cc\n} do (%Cj: i64, %Ct: f64[?,5]) {\n%Cx = get %Ct, %iB, %Cj : f64\n"
                       "%Cm = mul %Cx, %Cx : f64\n%Cs = set %Ct, %iB, %Cj, %Cm : f64[?,5]\n%Cn = add %Cj, %1 : i64\n"
                       "yield %Cn, %Cs\n}\n", "", "%C")));  // which change again when all are there
  CHECK(!unfilled(parts("%1", "%a = get %B, %iB, %1 : f64\n")));   // some twice, and the last is left
  CHECK(!unfilled(parts("%2", "%a = get %tt, %iB, %1 : f64\n")));  // before all of the row is there
  CHECK(!unfilled(parts("%2", "%a = get %B, %n2, %1 : f64\n")));   // another row, which may be written later
  CHECK(!unfilled(parts("%2", "%a = get %r, %iB, %1 : f64\n")));   // what the first loop has left
  CHECK(!unfilled(parts("%2", "%a = get %B, %iB, %1 : f64\n", "%b = get %r, %0, %3 : f64\n")));
}

namespace {

/// As DenseNet has it: what is joined is read by what makes the next part.
Matrix joined(Matrix x) {
  const Matrix a = concat<1>(x, tanh(x));
  return concat<1>(a, a * a);
}

}  // namespace

TEST_CASE("dead_fills: a concatenation along columns whose parts other loops join", "[passes]") {
  const TensorValue<double> x{{0.5, -1, 2, 0.25, 3, -0.5}, {2, 3}};
  for (const Target target : {Target::c, Target::cpp}) {
    const auto r = compile(joined, {.target = target})(x);
    REQUIRE(r.shape == std::vector<std::int64_t>{2, 12});
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 12; ++j) {
        const double e = x.data[3 * i + j % 3], y = j % 6 < 3 ? e : std::tanh(e);
        CHECK(r.data[12 * i + j] == Approx(j < 6 ? y : y * y));
      }
    CHECK(compile(joined, {.target = target})(TensorValue<double>{std::vector<double>{}, {0, 3}}).data.empty());
  }
}
