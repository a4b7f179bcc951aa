// raise: which loops become products of matrices, that nothing changes, and that what is wrong is still said.
#include "lantern/compiler/passes/array/raise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "../occurrences.hpp"
#include "around_pass.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using F = Rep<float>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

using lantern::test::count;
template <class Program>
std::size_t products(Program p) {
  return count(test::around_pass("raise", p).second, "gemm ");
}

/// c += s a b, the loops in an order: 0 is i, 1 is j, 2 is k.
auto ordered(std::array<int, 3> order, bool transposed_a = false, bool transposed_b = false) {
  return sig<Tensor<double, dyn, dyn>(Tensor<double, dyn, dyn>, Tensor<double, dyn, dyn>,
                                      Tensor<double, dyn, dyn>, double)>([=](M a, M b, M c, D s) {
    const I sizes[] = {c.dim(0), c.dim(1), a.dim(transposed_a ? 0 : 1)};
    FOR(0, sizes[order[0]], [&](I x) {
      FOR(0, sizes[order[1]], [&](I y) {
        FOR(0, sizes[order[2]], [&](I z) {
          I at[3];
          at[order[0]] = x;
          at[order[1]] = y;
          at[order[2]] = z;
          const auto [i, j, k] = at;
          const D p = transposed_a ? a(k, i) : a(i, k), q = transposed_b ? b(j, k) : b(k, j);
          c = c.set(i, j, c(i, j) + s * p * q);
        });
      });
    });
    return c;
  });
}

TensorValue<double> numbers(std::int64_t m, std::int64_t n, double phase = 0) {
  TensorValue<double> t{std::vector<double>(static_cast<std::size_t>(m * n)), {m, n}};
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = std::sin(1.3 * static_cast<double>(i) + phase);
  return t;
}

std::string outcome(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("raise: products in any order of the loops, each factor as it lies or turned", "[passes]") {
  for (const std::array<int, 3> order :
       {std::array{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}})
    for (const bool a : {false, true})
      for (const bool b : {false, true}) {
        CAPTURE(order[0], order[1], order[2], a, b);
        CHECK(products(ordered(order, a, b)) == 1);
      }
  // Of a gradient: the factors' adjoints, and the product itself where it is needed.
  const auto squared = [](std::array<int, 3> order) {
    const auto f = ordered(order);
    return sig<double(Tensor<double, dyn, dyn>, Tensor<double, dyn, dyn>, Tensor<double, dyn, dyn>)>(
        [f](M a, M b, M c) {
          const M r = f(a, b, c, D(1.5));
          return sum(r * r);
        });
  };
  CHECK(products(grad<0, 1>(squared({0, 2, 1}))) == 3);
  CHECK(products(grad<0, 1>(squared({2, 1, 0}))) == 3);
}

TEST_CASE("raise: the same numbers as loops", "[passes]") {
  for (const std::array<int, 3> order : {std::array{0, 1, 2}, {0, 2, 1}, {2, 1, 0}})
    for (const bool turned : {false, true}) {
      const auto f = ordered(order, turned, !turned);
      const auto fast = compile(f, {.target = Target::cpp});
      const auto slow = compile(f, {.target = Target::c, .disabled_passes = {"raise"}});
      for (const auto& [m, n, k] : {std::tuple{1, 1, 1},
                                    {3, 5, 2},
                                    {0, 4, 4},
                                    {4, 4, 0},
                                    {41, 43, 40},
                                    {17, 100, 64},
                                    {130, 9, 90}}) {
        CAPTURE(order[0], order[1], order[2], turned, m, n, k);
        const auto a = turned ? numbers(k, m) : numbers(m, k),
                   b = turned ? numbers(k, n, 1) : numbers(n, k, 1);
        const auto c = numbers(m, n, 2);
        const auto x = fast(a, b, c, 0.7), y = slow(a, b, c, 0.7);
        REQUIRE(x.data.size() == y.data.size());
        for (std::size_t i = 0; i < x.data.size(); ++i)
          REQUIRE(x.data[i] == Approx(y.data[i]).epsilon(1e-12).margin(1e-12));
      }
    }
}

TEST_CASE("raise: threads share out rows or columns, whichever are more", "[passes]") {
  for (const int threads : {2, 3}) {
    const auto shared = compile(ordered({0, 1, 2}), {.target = Target::cpp, .threads = threads});
    const auto alone = compile(ordered({0, 1, 2}), {.target = Target::cpp});
    CHECK(count(shared.source("cpp"), "lt_gemm_team_f64(ws, " + std::to_string(threads)) == 1);
    // The last two are too little work, and too few tiles for all threads.
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
             {301, 170, 90}, {170, 301, 90}, {257, 256, 300}, {20, 30, 40}, {5, 9, 90000}}) {
      const auto a = numbers(m, k), b = numbers(k, n, 0.4), c = numbers(m, n, 1.0);
      const auto got = shared(a, b, c, 0.75), expected = alone(a, b, c, 0.75);
      CAPTURE(m, n, k, threads);
      double most = 0;
      for (std::size_t i = 0; i < got.data.size(); ++i)
        most = std::max(most, std::abs(got.data[i] - expected.data[i]));
      CHECK(most <= 1e-13 * static_cast<double>(k));
    }
  }
}

TEST_CASE("raise: parts of flat arrays, and what stands beside the product", "[passes]") {
  // Rows are set before, and scaled after; indices are flat, and of inner parts.
  const auto f = [](A a, A b, A c, I n) {
    FOR(1, n - 1, [&](I i) {
      FOR(0, n, [&](I j) { c = c.set(i * n + j, 0.5 * c[i * n + j]); });
      FOR(0, n, [&](I j) {
        D s = 0.0;
        FOR(2, n, [&](I k) { s += a[i * n + k] * b[n * j + k]; });
        c = c.set(i * n + j, c[i * n + j] - 2.0 * s);
      });
    });
    return sum(c * c * c);
  };
  const auto program = sig<double(Array<double>, Array<double>, Array<double>, std::int64_t)>(f);
  CHECK(products(program) == 1);
  const auto gradient = value_and_grad<0, 1, 2>(program);
  CHECK(products(gradient) == 3);
  const auto fast = compile(gradient, {.target = Target::cpp}),
             slow = compile(gradient, {.target = Target::c});
  for (const std::int64_t n : {1, 2, 3, 8, 39, 42, 60}) {
    CAPTURE(n);
    const auto a = numbers(n, n).data, b = numbers(n, n, 1).data, c = numbers(n, n, 2).data;
    const auto [x, dx] = fast(a, b, c, n);
    const auto [y, dy] = slow(a, b, c, n);
    CHECK(x == Approx(y).epsilon(1e-11));
    const auto same = [](const std::vector<double>& p, const std::vector<double>& q) {
      REQUIRE(p.size() == q.size());
      for (std::size_t i = 0; i < p.size(); ++i) REQUIRE(p[i] == Approx(q[i]).epsilon(1e-10).margin(1e-9));
    };
    same(std::get<0>(dx), std::get<0>(dy));
    same(std::get<1>(dx), std::get<1>(dy));
    same(std::get<2>(dx), std::get<2>(dy));
  }
  // What is outside is named as by the loops.
  const std::vector<double> full(50 * 50), part(50 * 50 - 3);
  const std::string expected = outcome([&] { slow(full, part, full, 50); });
  CHECK(expected.find("index 2497 is outside 0..2496") != std::string::npos);
  CHECK(outcome([&] { fast(full, part, full, 50); }).find("is outside 0..2496") != std::string::npos);
}

TEST_CASE("raise: a product of what another product has made", "[passes]") {
  const auto f = [](M a, M b, M c) {
    const I n = c.dim(0);
    M d = c;
    const auto multiplied = [&](M& to, const M& x, const M& y) {
      FOR(0, n, [&](I i) {
        FOR(0, n, [&](I k) { FOR(0, n, [&](I j) { to = to.set(i, j, to(i, j) + x(i, k) * y(k, j)); }); });
      });
    };
    multiplied(d, a, b);
    multiplied(c, d, b);
    return sum(c * d);
  };
  const auto gradient = value_and_grad<0, 1, 2>(
      sig<double(Tensor<double, dyn, dyn>, Tensor<double, dyn, dyn>, Tensor<double, dyn, dyn>)>(f));
  CHECK(products(gradient) == 6);
  const auto fast = compile(gradient, {.target = Target::cpp}),
             slow = compile(gradient, {.target = Target::c});
  for (const std::int64_t n : {2, 40, 45}) {
    CAPTURE(n);
    const auto a = numbers(n, n), b = numbers(n, n, 1), c = numbers(n, n, 2);
    const auto [x, dx] = fast(a, b, c);
    const auto [y, dy] = slow(a, b, c);
    CHECK(x == Approx(y).epsilon(1e-11));
    for (std::size_t i = 0; i < a.data.size(); ++i) {
      REQUIRE(std::get<0>(dx).data[i] == Approx(std::get<0>(dy).data[i]).epsilon(1e-10).margin(1e-8));
      REQUIRE(std::get<1>(dx).data[i] == Approx(std::get<1>(dy).data[i]).epsilon(1e-10).margin(1e-8));
      REQUIRE(std::get<2>(dx).data[i] == Approx(std::get<2>(dy).data[i]).epsilon(1e-10).margin(1e-8));
    }
  }
}

TEST_CASE("raise: loops that are no products of matrices stay", "[passes]") {
  const auto stays = [](auto body) {
    return products(sig<Tensor<double, dyn, dyn>(Tensor<double, dyn, dyn>, Tensor<double, dyn, dyn>)>(
               [body](M a, M c) {
                 const I n = c.dim(0);
                 FOR(0, n,
                     [&](I i) { FOR(0, n, [&](I j) { FOR(0, n, [&](I k) { body(a, c, i, j, k); }); }); });
                 return c;
               })) == 0;
  };
  // The factors change in between.
  CHECK(stays(
      [](M&, M& c, const I& i, const I& j, const I& k) { c = c.set(i, j, c(i, j) + c(i, k) * c(k, j)); }));
  // An element in between is asked for.
  CHECK(stays([](M& a, M& c, const I& i, const I& j, const I& k) {
    c = c.set(i, j, c(i, j) + a(i, k) * a(k, j));
    a = a.set(i, k, c(i, j));
  }));
  // No reduction, or two factors that move alike.
  CHECK(stays(
      [](M& a, M& c, const I& i, const I& j, const I& k) { c = c.set(i, j, c(i, j) + a(i, k) * a(i, j)); }));
  CHECK(stays(
      [](M& a, M& c, const I& i, const I& j, const I& k) { c = c.set(i, j, c(i, j) + a(i, k) * a(i, k)); }));
  CHECK(stays([](M& a, M& c, const I& i, const I& j, const I& k) {
    c = c.set(i, j, c(i, j) + sin(a(i, k)) * a(k, j));
  }));
  // Where the program's sums keep their order.
  const auto strict = compile(ordered({0, 1, 2}), {.target = Target::cpp, .reassociate = false});
  CHECK(strict.source("ir").find("gemm") == std::string::npos);
}

TEST_CASE("raise: a factor that the loops' result starts as, whichever place it has in their state",
          "[passes]") {
  const auto module = ir::parse(R"(entry @f

fun @f(%c: f64[?,?], %a: f64[?,?], %n: i64) -> f64[?,?] {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %t1, %i1 = loop %c, %zero : f64[?,?], i64 while (%ct: f64[?,?], %ci: i64) {
    %x1 = lt %ci, %n : bool
    yield %x1
  } do (%t: f64[?,?], %i: i64) {
    %t2, %j1 = loop %t, %zero : f64[?,?], i64 while (%cu: f64[?,?], %cj: i64) {
      %x2 = lt %cj, %n : bool
      yield %x2
    } do (%u: f64[?,?], %j: i64) {
      %t3, %k1 = loop %u, %zero : f64[?,?], i64 while (%cv: f64[?,?], %ck: i64) {
        %x3 = lt %ck, %n : bool
        yield %x3
      } do (%v: f64[?,?], %k: i64) {
        %p = get %c, %i, %k : f64
        %q = get %a, %k, %j : f64
        %r = mul %p, %q : f64
        %w = add_at %v, %i, %j, %r : f64[?,?]
        %kn = add %k, %one : i64
        yield %w, %kn
      }
      %jn = add %j, %one : i64
      yield %t3, %jn
    }
    %in = add %i, %one : i64
    yield %t2, %in
  }
  yield %t1
}
)");
  passes::raise_products(*module);
  ir::verify(*module);
  // c is read as it was.
  CHECK(ir::print(*module).find(" = gemm %c, %c, %a, ") != std::string::npos);
}

TEST_CASE("gemm: what the verifier refuses", "[ir]") {
  const auto program = [](const std::string& scale, const std::string& b) {
    return "entry @f\n\nfun @f(%c: f64[?,?], %b: " + b + ", %s: " + scale +
           ", %n: i64) -> f64[?,?] {\n  %r = gemm %c, %c, %b, %s, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n "
           ": "
           "f64[?,?]\n  yield %r\n}\n";
  };
  CHECK_NOTHROW(ir::verify(*ir::parse(program("f64", "f64[?]"))));
  CHECK_THROWS_WITH(ir::verify(*ir::parse(program("i64", "f64[?]"))),
                    Catch::Contains("a number of that type"));
  CHECK_THROWS_WITH(ir::verify(*ir::parse(program("f64", "f32[?]"))),
                    Catch::Contains("three tensors of floating-point numbers of one type"));
}
