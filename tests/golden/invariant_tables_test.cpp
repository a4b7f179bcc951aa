// invariant_tables: what becomes a table, what does not, and that reads stay where they are allowed.
#include "lantern/compiler/passes/array/invariant_tables.hpp"

#include <catch2/catch.hpp>

#include "../correctness/agree.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

template <class F>
D total(const I& n, F f) {
  return FOR(0, n, D(0.0), [&](I i, D sum) { return sum + f(i); });
}

/// A loop over %n iterations with an inner one over %m whose iterations add `value`, made by `body` of the indices %i
/// outside and %k inside.
std::string nest(const std::string& body) {
  return R"(entry @f

fun @f(%x: f64[?], %n: i64, %m: i64) -> f64 {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %none = constant 0 : f64
  %last, %sum = loop %zero, %none : i64, f64 while (%c: i64, %s: f64) {
    %l = lt %c, %n : bool
    yield %l
  } do (%i: i64, %s1: f64) {
    %last1, %sum1 = loop %zero, %s1 : i64, f64 while (%c1: i64, %t: f64) {
      %l1 = lt %c1, %m : bool
      yield %l1
    } do (%k: i64, %t1: f64) {
)" + body +
         R"(      %t2 = add %t1, %value : f64
      %k1 = add %k, %one : i64
      yield %k1, %t2
    }
    %i1 = add %i, %one : i64
    yield %i1, %sum1
  }
  yield %sum
}
)";
}

std::string after_tables(const std::string& text) {
  const auto module = ir::parse(text);
  passes::invariant_tables(*module);
  ir::verify(*module);
  return ir::print(*module);
}

bool moves(const std::string& body) { return after_tables(nest(body)) != ir::print(*ir::parse(nest(body))); }

}  // namespace

TEST_CASE("invariant_tables: a function of what only the inner loop changes", "[passes]") {
  CHECK(after_tables(nest("      %v = get %x, %k : f64\n      %value = exp %v : f64\n")) == R"(entry @f

fun @f(%x: f64[?], %n: i64, %m: i64) -> f64 {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %none = constant 0 : f64
  %1 = constant 0 : i64
  %2 = lt %1, %n : bool
  %3 = constant 0 : i64
  %4 = select %2, %m, %3 : i64
  %5 = constant 0 : i64
  %6 = imax %4, %5 : i64
  %7 = constant 0 : f64
  %8 = fill %7, %6 : f64[?]
  %9 = constant 0 : i64
  %10, %11 = loop %9, %8 : i64, f64[?] while (%12: i64, %13: f64[?]) {
    %14 = lt %12, %6 : bool
    yield %14
  } do (%15: i64, %16: f64[?]) {
    %v = get %x, %15 : f64
    %value = exp %v : f64
    %17 = set %16, %15, %value : f64[?]
    %18 = constant 1 : i64
    %19 = add %15, %18 : i64
    yield %19, %17
  }
  %last, %sum = loop %zero, %none : i64, f64 while (%c: i64, %s: f64) {
    %l = lt %c, %n : bool
    yield %l
  } do (%i: i64, %s1: f64) {
    %last1, %sum1 = loop %zero, %s1 : i64, f64 while (%c1: i64, %t: f64) {
      %l1 = lt %c1, %m : bool
      yield %l1
    } do (%k: i64, %t1: f64) {
      %value.2 = get %11, %k : f64
      %t2 = add %t1, %value.2 : f64
      %k1 = add %k, %one : i64
      yield %k1, %t2
    }
    %i1 = add %i, %one : i64
    yield %i1, %sum1
  }
  yield %sum
}
)");
}

TEST_CASE("invariant_tables: what stays and what moves", "[passes]") {
  const std::string read = "      %v = get %x, %k : f64\n";
  CHECK(moves(read + "      %value = exp %v : f64\n"));
  CHECK(moves(read + "      %w = mul %v, %v : f64\n      %value = log %w : f64\n"));
  // Of nothing but what comes from outside.
  CHECK(moves("      %v = get %x, %zero : f64\n      %value = exp %v : f64\n"));
  // A sum costs no more than a read.
  CHECK_FALSE(moves(read + "      %value = add %v, %v : f64\n"));
  // The outer loop changes it.
  CHECK_FALSE(
      moves("      %j = add %i, %k : i64\n      %v = get %x, %j : f64\n      %value = exp %v : f64\n"));
  CHECK_FALSE(moves(read + "      %w = mul %v, %t1 : f64\n      %value = exp %w : f64\n"));
  // Read only under a condition.
  CHECK_FALSE(
      moves("      %b = lt %one, %k : bool\n      %value = branch %b : f64 {\n        %v = get %x, %k : "
            "f64\n        %e = exp %v : f64\n        yield %e\n      } else {\n        yield %none\n      "
            "}\n"));
}

TEST_CASE("invariant_tables: of sizes that nothing bounds they are made where there is room", "[passes]") {
  const std::string after =
      after_tables(nest("      %v = cast[f64] %k : f64\n      %value = exp %v : f64\n"));
  CHECK(after.find("= branch") != std::string::npos);
  CHECK(after.find("fill") != std::string::npos);
  // The loop without a table is there too.
  CHECK(after.find("exp") != after.rfind("exp"));
}

TEST_CASE("invariant_tables: nothing is read where no iteration is made", "[passes]") {
  // x has elements for the points alone: with no point there is none.
  const auto f = [](A x, I points, I columns) {
    return total(points, [&](I n) {
      return total(columns, [&](I k) { return exp(x[k]) * cast<double>(n) + sin(x[columns - 1]); });
    });
  };
  const std::vector<double> x{0.1, 0.2, 0.3};
  for (const Target target : {Target::c, Target::cpp}) {
    const auto value = compile(f, {.target = target, .opt = 3});
    CHECK(value({}, 0, 3) == 0.0);
    CHECK(value(x, 2, 0) == 0.0);
    CHECK(value(x, -1, 5) == 0.0);
    CHECK(value(x, 3, 3) == Approx(eager(f)(x, 3, 3)));
    CHECK_THROWS_WITH(value(x, 1, 4), Catch::Contains("3"));
  }
}

TEST_CASE("invariant_tables: derivatives", "[passes]") {
  const auto f = [](M p, M w) {
    return total(p.dim(0), [&](I n) {
      return log(total(w.dim(0), [&](I k) {
        return exp(-0.5 * total(w.dim(1), [&](I i) {
          const D row = exp(w(k, i)) * p(n, i) +
                        FOR(0, i, sin(w(k, 0)), [&](I j, D s) { return s + w(k, j) * p(n, j); });
          return row * row;
        }));
      }));
    });
  };
  std::vector<double> points, weights;
  for (int i = 0; i < 51; ++i) points.push_back(0.3 * std::sin(1.0 + 3.0 * i));
  for (int i = 0; i < 12; ++i) weights.push_back(0.5 * std::cos(2.0 * i));
  const TensorView<const double> p(points.data(), {17, 3}), w(weights.data(), {4, 3});
  const auto gradient = grad<0, 1>(f);
  const auto expected = eager(gradient)(p, w);
  for (const Target target : {Target::c, Target::cpp})
    for (const bool on : {true, false}) {
      CompileOptions options{.target = target, .opt = 3};
      if (!on) options.disabled_passes = {"invariant_tables"};
      const auto got = compile(gradient, options)(p, w);
      for (std::int64_t i = 0; i < 51; ++i)
        CHECK(std::get<0>(got).data[static_cast<std::size_t>(i)] ==
              Approx(std::get<0>(expected).data[static_cast<std::size_t>(i)]).epsilon(1e-11));
      for (std::int64_t i = 0; i < 12; ++i)
        CHECK(std::get<1>(got).data[static_cast<std::size_t>(i)] ==
              Approx(std::get<1>(expected).data[static_cast<std::size_t>(i)]).epsilon(1e-11));
    }
}
