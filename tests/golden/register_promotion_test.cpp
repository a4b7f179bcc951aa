// Elements that loops work on, as numbers.
#include <catch2/catch.hpp>
#include <cmath>

#include "../occurrences.hpp"
#include "around_pass.hpp"
#include "lantern/lantern.hpp"

namespace lantern {
namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using V = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

using lantern::test::count;

/// Value and gradient as staged at -O0 without this step would give them: evaluated at once.
template <class F>
void check(F f, const std::vector<double>& x) {
  const auto program = sig<double(Array<double>)>(f);
  const std::vector<double> expected = eager(grad(program))(x);
  for (const int opt : {0, 2, 3}) {
    CAPTURE(opt);
    const CompileOptions options{.target = opt == 3 ? Target::cpp : Target::c, .opt = opt};
    CHECK(compile(program, options)(x) == Approx(eager(program)(x)).epsilon(1e-12));
    const std::vector<double> got = compile(grad(program), options)(x);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-11));
  }
}

std::vector<double> numbers(std::size_t n) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = 0.4 + std::sin(1.3 * static_cast<double>(i));
  return x;
}

TEST_CASE("register_promotion: a sum in an element", "[passes]") {
  const auto rows = [](V a) {
    const I n = a.size();
    const V y = FOR(0, n, fill(D(0.0), n), [&](I i, V outer) {
      return FOR(0, n, outer, [&](I j, V inner) { return inner.set(i, inner[i] + a[i] * sin(a[j])); });
    });
    return sum(y * y);
  };
  check(rows, numbers(7));
  check(rows, {});
  const std::string ir = compile(sig<double(Array<double>)>(rows), CompileOptions{.opt = 0}).source("ir");
  // One read and one store of y[i] for all iterations of the inner loop, beside the reads of a; then those of the
  // squares and of their sum.
  CHECK(count(ir, "= set") == 2);
  CHECK(count(ir, "= get ") == 5);
}

TEST_CASE("register_promotion: set, read again, and added to", "[passes]") {
  check(
      [](V a) {
        const I n = a.size();
        V y = a;
        FOR(0, n, [&](I i) {
          FOR(0, n - i, [&](I j) {
            y = y.set(i, 0.5 * y[i] + a[j]);
            y = y.set(i, y[i] * cos(y[i]) + a[i]);
          });
        });
        return sum(y);
      },
      numbers(6));
}

TEST_CASE("register_promotion: several loops around one element", "[passes]") {
  check(
      [](V a) {
        const I n = a.size();
        const V y = FOR(0, n, fill(D(1.0), n), [&](I i, V s) {
          return FOR(0, n, s, [&](I j, V t) {
            return FOR(0, j, t, [&](I k, V u) { return u.set(i, u[i] + a[i] * a[j] * a[k]); });
          });
        });
        return sum(y);
      },
      numbers(5));
}

TEST_CASE("register_promotion: other elements are read meanwhile", "[passes]") {
  // The sums of a Cholesky factorisation, of a matrix and of rows one after another.
  const auto factor = [](V a) {
    const I n = 5;
    FOR(0, n, [&](I i) {
      FOR(0, i, [&](I j) {
        FOR(0, j, [&](I k) { a = a.set(i * n + j, a[i * n + j] - a[i * n + k] * a[j * n + k]); });
        a = a.set(i * n + j, a[i * n + j] / a[j * n + j]);
      });
      FOR(0, i, [&](I k) { a = a.set(i * n + i, a[i * n + i] - a[i * n + k] * a[i * n + k]); });
      a = a.set(i * n + i, sqrt(a[i * n + i]));
    });
    return sum(a * a * a);
  };
  std::vector<double> x = numbers(25);
  for (std::size_t i = 0; i < 5; ++i) x[6 * i] += 9;
  check(factor, x);
  const std::string ir = compile(sig<double(Array<double>)>(factor), CompileOptions{.opt = 0}).source("ir");
  CHECK(count(ir, "= set") == 6);  // two of the cubes
}

TEST_CASE("register_promotion: what an adjoint's element gets from a loop that adds to others as well",
          "[passes]") {
  const auto pairs = [](V a) {
    const I n = a.size();
    return FOR(0, n, D(0.0),
               [&](I i, D s) { return FOR(0, n, s, [&](I j, D t) { return t + sin(a[i] * a[j]) * a[i]; }); });
  };
  check(pairs, numbers(7));
  check(pairs, {});
  const auto [before, after] =
      test::around_pass("register_promotion", grad(sig<double(Array<double>)>(pairs)));
  // In the inner loop, which is the last one, what goes to a[i] is a sum.
  const auto inner = [](const std::string& ir) {
    const std::string loop = ir.substr(ir.rfind(" = loop %", ir.rfind("sin ")));
    return loop.substr(0, loop.find("\n    }\n"));
  };
  CHECK(count(inner(before), "add_at ") == 2);
  CHECK(count(inner(after), "add_at ") == 1);
}

TEST_CASE("register_promotion: two sums of adjoints that may reach the same element", "[passes]") {
  // By columns of a matrix: in the last iteration of the inner loop both factors are one element.
  const auto columns = [](V a) {
    const I n = 5;
    FOR(0, n, [&](I k) {
      FOR(k + 1, n, [&](I i) {
        FOR(k + 1, i + 1, [&](I j) { a = a.set(i * n + j, a[i * n + j] - a[i * n + k] * a[j * n + k]); });
      });
    });
    return sum(a * a);
  };
  check(columns, numbers(25));
  const auto [before, after] =
      test::around_pass("register_promotion", grad(sig<double(Array<double>)>(columns)));
  CHECK(count(before, "add_at ") == 2);
  CHECK(count(after, "add_at ") == 2);  // one of them is behind the loop
  const std::string rest = after.substr(after.rfind("add_at "));
  CHECK(count(rest.substr(0, rest.find("\n    }\n")), "get ") == 0);
}

TEST_CASE("register_promotion: sums with a branch between them", "[passes]") {
  check(
      [](V a) {
        const I n = a.size();
        V y = a;
        return FOR(0, n, D(0.0), [&](I i, D s) {
          FOR(0, n, [&](I j) {
            y = y.set(i, y[i] + sin(a[i]) * a[j]);
            IF(a[j] > 0.5, [&] { s += y[i] * a[i] * a[j]; });
            y = y.set(i, y[i] * 0.5 + a[i] * a[n - 1 - j]);
          });
          return s + a[i] * y[i];
        });
      },
      numbers(6));
}

TEST_CASE("register_promotion: what stays an array", "[passes]") {
  // The element may be outside the array where the loop makes no iteration.
  const auto past = sig<double(Array<double>, std::int64_t)>([](V a, I at) {
    const V y = FOR(0, a.size(), a, [&](I i, V s) { return s.set(at, s[at] + a[i]); });
    return sum(y);
  });
  for (const int opt : {0, 3}) {
    const auto f = compile(past, CompileOptions{.opt = opt});
    CHECK(f(std::vector<double>{}, 4) == 0);
    CHECK(f(std::vector{1.0, 2.0}, 1) == 6);
    CHECK_THROWS_WITH(f(std::vector{1.0, 2.0}, 2), Catch::Contains("index 2"));
  }
  // A branch, and a loop inside, hand the array on.
  check(
      [](V a) {
        const I n = a.size();
        const auto [all, rest] = FOR(0, n, std::tuple(a, D(0.0)), [&](I i, V y, D s) {
          return FOR(0, n, std::tuple(y, s), [&](I j, V z, D t) {
            const auto [z1, t1] = IF(
                a[j] > 0.3, [&] { return std::tuple(z, t + z[i] * a[j]); }, [&] { return std::tuple(z, t); });
            const auto [z2, t2] = FOR(0, 2, std::tuple(z1, t1), [&](I k, V u, D r) {
              return std::tuple(u, r + u[i] * cast<double>(k));
            });
            return std::tuple(z2.set(i, z2[i] * 0.9 + t2 * 0.01), t2);
          });
        });
        return sum(all * all) + rest;
      },
      numbers(5));
  // Another element is read too.
  check(
      [](V a) {
        const I n = a.size();
        const V y = FOR(1, n, a, [&](I i, V s) {
          return FOR(0, n, s, [&](I, V t) { return t.set(i, t[i] + 0.1 * t[i - 1]); });
        });
        return sum(y * y);
      },
      numbers(6));
}

}  // namespace
}  // namespace lantern
