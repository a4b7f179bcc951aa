// What derivatives keep: which values go onto a tape, which are read again, and that nothing is kept unread.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "../occurrences.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

using lantern::test::count;

D squares(A a) {
  return FOR(0, a.size(), 0.0, [&](I i, D sum) { return sum + a[i] * a[i]; });
}

/// `steps` steps in which each inner element becomes f(left, own, right).
template <class F>
auto steps_of(F f) {
  return [f](A a, I steps) {
    const I n = a.size();
    return squares(FOR(0, steps, a, [&](I, A s) {
      return FOR(1, n - 1, s, [&](I i, A v) { return v.set(i, f(s[i - 1], s[i], s[i + 1])); });
    }));
  };
}

std::vector<double> wave(std::size_t n) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = 0.5 + 0.3 * std::sin(1.0 + static_cast<double>(i));
  return x;
}

struct Kept {
  std::size_t arrays = 0, numbers = 0;
  bool operator==(const Kept&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Kept& k) {
  return out << k.arrays << " arrays and " << k.numbers << " numbers";
}

/// What the pushes of a compiled function keep each time: values by their types.
Kept kept(const std::string& ir) {
  Kept k;
  const auto module = ir::parse(ir);
  for (const ir::Function* f : module->functions())
    ir::walk(f->body, [&](const ir::Op* op) {
      if (!op->is(ir::Opcode::push_)) return;
      for (const ir::Value* v : op->operands) ++(v->type.is_tensor() ? k.arrays : k.numbers);
    });
  return k;
}

/// The gradient by the first argument, at several sizes, beside the eager one; what it keeps.
template <class F>
Kept kept_by_steps(F f) {
  const auto gradient = grad<0>(f);
  const auto reference = eager(gradient);
  std::string text;  // without lanes, where a loop stands once
  for (const Target target : {Target::c, Target::cpp}) {
    const auto compiled = compile(gradient, {.target = target, .opt = 3});
    if (target == Target::c) text = compiled.source("ir");
    for (const std::size_t n : {2u, 3u, 4u, 9u, 41u}) {
      const std::vector<double> expected = reference(wave(n), 3), got = compiled(wave(n), 3);
      REQUIRE(got.size() == n);
      for (std::size_t i = 0; i < n; ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
    }
  }
  return kept(text);
}

}  // namespace

TEST_CASE("tape: linear steps keep nothing", "[tape]") {
  CHECK(kept_by_steps(steps_of([](D l, D c, D r) { return c + 0.1 * (l - 2.0 * c + r); })) == Kept{0, 0});
  const auto plate = [](M a) {
    const I m = a.dim(0), n = a.dim(1);
    const M last = FOR(0, 3, a, [&](I, M s) {
      return FOR(1, m - 1, s, [&](I i, M rows) {
        return FOR(1, n - 1, rows, [&](I j, M r) {
          return r.set(i, j, 0.25 * (s(i - 1, j) + s(i + 1, j) + s(i, j - 1) + s(i, j + 1)));
        });
      });
    });
    return sum(last * last);
  };
  CHECK(kept(compile(grad(plate), {.target = Target::c, .opt = 3}).source("ir")) == Kept{0, 0});
}

TEST_CASE("tape: nonlinear stencils keep the array of each step", "[tape]") {
  const auto stencil = steps_of([](D l, D c, D r) { return c - 0.1 * c * (r - l); });
  CHECK(kept_by_steps(stencil) == Kept{1, 0});
  const auto flux = [](D d) { return d / (1.0 + d * d); };
  CHECK(kept_by_steps(steps_of([=](D l, D c, D r) { return c + 0.1 * (flux(r - c) - flux(c - l)); })) ==
        Kept{1, 0});
  CHECK(kept_by_steps(steps_of([](D l, D c, D r) {
          return IF(r > l, [&] { return c - 0.1 * c * (c - l); }, [&] { return c - 0.1 * c * (r - c); });
        })) == Kept{1, 0});
  // Functions of the mathematical library are not computed again.
  CHECK(kept_by_steps(steps_of([](D l, D c, D r) { return c + 0.1 * (l + r) * exp(-c); })) == Kept{1, 1});
}

TEST_CASE("tape: a number that is repeated over an array is kept as a number, if at all", "[tape]") {
  const auto grown = [](const auto& h) {
    return
        [h](A a, I steps) { return squares(FOR(0, steps, a, [&](I, A v) { return v + h(a, v) * exp(v); })); };
  };
  CHECK(kept_by_steps(grown([](const A& a, const A&) { return 0.5 * a[0]; })) == Kept{1, 0});
  // Another one in each iteration, and what its derivative takes.
  CHECK(kept_by_steps(grown([](const A&, const A& v) { return sin(v[0]); })) == Kept{1, 2});
}

TEST_CASE("tape: what follows from the rest of a frame is not in it", "[tape]") {
  // 1 / (1 + e) is asked for before e, which it is made of.
  CHECK(kept_by_steps(steps_of([](D l, D c, D r) { return c + 0.1 * (l - r) / (1.0 + exp(-c)); })) ==
        Kept{1, 1});
  const auto gate = [](const D& x) { return 1.0 / (1.0 + exp(-x)); };
  const auto cells = [=](A a, I steps) {
    return squares(FOR(0, steps, a, [&](I, A s) {
      return FOR(0, a.size(), s, [&](I i, A next) {
        const D c = s[i];
        return next.set(i, gate(2.0 * c) * c + gate(c + 1.0) * tanh(c));
      });
    }));
  };
  // The state, an exponential for each gate, and the hyperbolic tangent.
  CHECK(kept_by_steps(cells) == Kept{0, 4});
}

TEST_CASE("tape: functions of the mathematical library are kept, whatever they are called", "[tape]") {
  const auto times = [](auto f) {
    return kept_by_steps(steps_of([f](D l, D c, D r) { return c + 0.1 * (l - r) * f(c); }));
  };
  const Kept of_exp = times([](const D& x) { return exp(x); });
  CHECK(of_exp.numbers > 0);
  CHECK(times([](const D& x) { return exp2(x); }) == of_exp);
  CHECK(times([](const D& x) { return expm1(x); }) == of_exp);
  CHECK(times([](const D& x) { return log2(x + 3.0); }).numbers == of_exp.numbers);
  // What is an instruction is made again.
  CHECK(times([](const D& x) { return floor(x); }).numbers < of_exp.numbers);
}

TEST_CASE("tape: steps of two stages, of two dimensions, and of pairs", "[tape]") {
  const auto midpoint = [](A a, I steps) {
    const I n = a.size();
    return squares(FOR(0, steps, a, [&](I, A s) {
      const auto step = [&](A from, D h) {
        return FOR(1, n - 1, s,
                   [&](I i, A v) { return v.set(i, s[i] - h * from[i] * (from[i + 1] - from[i - 1])); });
      };
      return step(step(s, 0.05), 0.1);
    }));
  };
  CHECK(kept_by_steps(midpoint) == Kept{2, 0});

  const auto pairs = [](A a, I steps) {
    const I n = a.size();
    return squares(FOR(0, steps, a, [&](I, A x) {
      return FOR(0, n, x, [&](I i, A next) {
        const D force = FOR(0, n, 0.0, [&](I j, D sum) {
          const D d = x[j] - x[i];
          return sum + d / (0.1 + d * d);
        });
        return next.set(i, x[i] + 0.01 * force);
      });
    }));
  };
  // 0.1 + d * d is not 0: no factor can be infinite, and nothing is kept of where something flows.
  CHECK(kept_by_steps(pairs) == Kept{1, 0});

  const auto plate = [](M a, I steps) {
    const I m = a.dim(0), n = a.dim(1);
    const M last = FOR(0, steps, a, [&](I, M s) {
      return FOR(1, m - 1, s, [&](I i, M rows) {
        return FOR(1, n - 1, rows, [&](I j, M r) {
          return r.set(i, j,
                       s(i, j) - 0.1 * s(i, j) * (s(i + 1, j) - s(i - 1, j) + s(i, j + 1) - s(i, j - 1)));
        });
      });
    });
    return sum(last * last);
  };
  const auto compiled = compile(grad<0>(plate), {.target = Target::cpp, .opt = 3});
  CHECK(kept(compiled.source("ir")) == Kept{1, 0});
  const std::vector<double> x = wave(7 * 12);
  const TensorView<const double> view(x.data(), {7, 12});
  const auto expected = eager(grad<0>(plate))(view, 3), got = compiled(view, 3);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(got.data[i] == Approx(expected.data[i]).epsilon(1e-12));
}

TEST_CASE("tape: a network in time keeps its state, not the factors of its sums", "[tape]") {
  const auto network = [](M w, A a, I steps) {
    const I n = a.size();
    return squares(FOR(0, steps, a, [&](I, A h) {
      return FOR(0, n, h, [&](I i, A next) {
        return next.set(i, tanh(FOR(0, n, 0.0, [&](I j, D sum) { return sum + w(i, j) * h[j]; })));
      });
    }));
  };
  const auto gradient = grad<0, 1>(network);
  const auto compiled = compile(gradient, {.target = Target::cpp, .opt = 3});
  CHECK(kept(compile(gradient, {.target = Target::c, .opt = 3}).source("ir")) == Kept{1, 1});
  const std::vector<double> w = wave(25);
  const TensorView<const double> view(w.data(), {5, 5});
  const auto [dw, da] = eager(gradient)(view, wave(5), 4);
  const auto [gw, ga] = compiled(view, wave(5), 4);
  for (std::size_t i = 0; i < w.size(); ++i) CHECK(gw.data[i] == Approx(dw.data[i]).epsilon(1e-12));
  for (std::size_t i = 0; i < 5; ++i) CHECK(ga[i] == Approx(da[i]).epsilon(1e-12));
}

TEST_CASE("tape: what an iteration reads of elements that are not written again is found where they lie",
          "[tape]") {
  const auto check = [](auto f, const std::vector<std::size_t>& sizes) {
    const auto df = compile(grad(f), {.target = Target::cpp}),
               plain = compile(grad(f), {.target = Target::c});
    for (const std::size_t n : sizes) {
      CAPTURE(n);
      const std::vector<double> x = wave(n), expected = eager(grad(f))(x);
      for (const auto& got : {df(x), plain(x)}) {
        REQUIRE(got.size() == n);
        for (std::size_t i = 0; i < n; ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-10));
      }
    }
    return kept(plain.source("ir"));
  };
  const auto recurrence = [](A x) {
    return squares(FOR(1, x.size(), fill(D(0.7), x.size()),
                       [&](I i, A a) { return a.set(i, x[i] * a[i - 1] * a[i - 1]); }));
  };
  CHECK(check(recurrence, {1, 2, 3, 10, 100}) == Kept{0, 0});
  // a Cholesky factor of a matrix made of x, and what it solves
  const auto factor = [](A x) {
    const I n = x.size();
    const M low = FOR(0, n, fill(D(0.0), n, n), [&](I i, M rows) {
      const M row = FOR(0, i, rows, [&](I j, M l) {
        return l.set(i, j, FOR(0, j, x[i] * x[j], [&](I c, D s) { return s - l(i, c) * l(j, c); }) / l(j, j));
      });
      return row.set(i, i, sqrt(FOR(0, i, 3.0 + x[i], [&](I c, D s) { return s - row(i, c) * row(i, c); })));
    });
    return squares(FOR(0, n, fill(D(0.0), n), [&](I i, A y) {
      return y.set(i, FOR(0, i, x[i], [&](I c, D s) { return s - low(i, c) * y[c]; }) / low(i, i));
    }));
  };
  CHECK(check(factor, {1, 2, 3, 7, 20}).arrays == 0);
  CHECK(check(factor, {}).numbers <= 4);  // a few of each row and element, none of each product

  // Or, where they are read as they were before the loop, in what that starts with.
  const auto ahead = [](A x) {
    return squares(FOR(1, x.size(), x, [&](I i, A a) { return a.set(i - 1, a[i] * a[i] * a[i - 1]); }));
  };
  CHECK(check(ahead, {1, 2, 3, 10}) == Kept{0, 0});
  // Of a matrix with flat indices too: rows of it are final, or still as they were.
  const auto elimination = [](A x) {
    const I n = 4;
    A a = FOR(0, n * n, fill(D(0.0), n * n),
              [&](I k, A t) { return t.set(k, x[k] + select(k % 5 == 0, D(2.0), D(0.0))); });
    FOR(0, n, [&](I i) {
      FOR(0, i, [&](I j) {
        FOR(0, j, [&](I k) { a = a.set(i * n + j, a[i * n + j] - a[i * n + k] * a[k * n + j]); });
        a = a.set(i * n + j, a[i * n + j] / a[j * n + j]);
      });
      FOR(i, n, [&](I j) {
        FOR(0, i, [&](I k) { a = a.set(i * n + j, a[i * n + j] - a[i * n + k] * a[k * n + j]); });
      });
    });
    return squares(a);
  };
  CHECK(check(elimination, {16}).arrays == 0);
  CHECK(check(elimination, {}).numbers <= 2);  // a quotient of each row and column, none of each product
  const auto triangle = [](A x) {
    const I n = 5;
    A b = x;
    FOR(0, n, [&](I i) {
      FOR(0, n, [&](I j) {
        FOR(i + 1, n, [&](I k) { b = b.set(i * n + j, b[i * n + j] + x[k * n + i] * b[k * n + j]); });
      });
    });
    return squares(b);
  };
  CHECK(check(triangle, {25}) == Kept{0, 0});

  // Elements that are written again, having been written before, are kept.
  const auto again = [](A x) {
    return squares(FOR(1, x.size(), x, [&](I i, A a) {
      return a.set(i, x[i] * a[i - 1] * a[i - 1]).set(i - 1, sin(a[i - 1]));
    }));
  };
  CHECK(check(again, {1, 2, 3, 10}).numbers > 0);
  const auto in_turn = [](A x) {
    return squares(FOR(0, 3, x, [&](I, A a) {
      return FOR(1, x.size(), a,
                 [&](I i, A b) { return b.set(i, 0.3 * b[i - 1] * b[i - 1] + 0.3 * sin(b[i])); });
    }));
  };
  CHECK(check(in_turn, {1, 2, 3, 10}) != Kept{0, 0});
  // A loop that is run in segments leaves the same behind.
  const std::vector<double> many(600'000, 0.999), ones(many.size(), 1.0);
  const auto long_one = [](A x) {
    return squares(
        FOR(1, x.size(), x, [&](I i, A a) { return a.set(i, sin(x[i] * a[i - 1]) + 0.1 * a[i - 1]); }));
  };
  const std::vector<double> d = compile(grad(long_one), {.target = Target::cpp})(many);
  double along = 0;
  for (const double v : d) along += v;
  const auto forward = compile(jvp(long_one), {.target = Target::cpp})(many, ones);
  CHECK(along == Approx(std::get<1>(forward)).epsilon(1e-9));
}

TEST_CASE("tape: what all iterations of a loop read alike, and a later loop changes, is kept once for it",
          "[tape]") {
  const auto check = [](auto f, std::initializer_list<std::int64_t> sizes) {
    const auto g = grad<0>(f);
    const auto fast = compile(g, {.target = Target::cpp}), plain = compile(g, {.target = Target::c});
    for (const std::int64_t n : sizes) {
      CAPTURE(n);
      std::vector<double> x = wave(static_cast<std::size_t>(n * n));
      for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i * n + (i + 1) % n)] += 2.0;
      const std::vector<double> expected = eager(g)(x, n);
      for (const auto& got : {fast(x, n), plain(x, n)}) {
        REQUIRE(got.size() == x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          CHECK(got[i] == Approx(expected[i]).epsilon(1e-9).margin(1e-12));
      }
    }
    return kept(plain.source("ir"));
  };
  // Rows change places, so that row k is not yet as it will stay.
  const auto pivots = [](A a, I n) {
    D product = 1.0;
    FOR(0, n, [&](I k) {
      I pivot = k;
      FOR(k + 1, n, [&](I i) { IF(abs(a[i * n + k]) > abs(a[pivot * n + k]), [&] { pivot = i; }); });
      IF(pivot != k, [&] {
        FOR(0, n, [&](I j) {
          const D own = a[k * n + j];
          a = a.set(k * n + j, a[pivot * n + j]).set(pivot * n + j, own);
        });
      });
      product *= a[k * n + k];
      FOR(k + 1, n, [&](I i) {
        const D factor = a[i * n + k] / a[k * n + k];
        FOR(k, n, [&](I j) { a = a.set(i * n + j, a[i * n + j] - factor * a[k * n + j]); });
      });
    });
    return product * product;
  };
  const Kept of_pivots = check(pivots, {0, 1, 2, 3, 9, 20});
  CHECK(of_pivots.arrays == 1);
  CHECK(of_pivots.numbers <= 6);  // of each k and of each i, none of each j
  // All other rows, those above too; a tensor of two dimensions.
  const auto jordan = [](A x, I n) {
    M a = fill(D(0.0), n, n);
    FOR(0, n, [&](I i) { FOR(0, n, [&](I j) { a = a.set(i, j, x[i * n + j]); }); });
    FOR(0, n, [&](I k) {
      FOR(0, n, [&](I i) {
        IF(i != k, [&] {
          const D factor = a(i, k) / a(k, k);
          FOR(0, n, [&](I j) { a = a.set(i, j, a(i, j) - factor * a(k, j)); });
        });
      });
    });
    return sum(a * a);
  };
  const Kept of_jordan = check(jordan, {0, 1, 2, 3, 9, 20});
  CHECK(of_jordan.arrays == 1);
  CHECK(of_jordan.numbers <= 3);
  // A row below the last one is read by nobody, nor is it where no iteration is made.
  const auto below = [](A a, I n) {
    FOR(0, n, [&](I k) {
      FOR(0, n, [&](I i) {
        IF(i != k + 1, [&] {
          IF(k + 1 < n,
             [&] { FOR(0, n, [&](I j) { a = a.set(i * n + j, 0.3 * a[i * n + j] * a[(k + 1) * n + j]); }); });
        });
      });
      FOR(n, n,
          [&](I i) { FOR(0, n, [&](I j) { a = a.set(i * n + j, a[i * n + j] * a[(k + n) * n + j]); }); });
    });
    return squares(a);
  };
  CHECK(check(below, {0, 1, 2, 3, 9, 20}).arrays >= 1);
}

TEST_CASE("tape: of an array that gives way to another the part that is read is kept", "[tape]") {
  // Two arrays in turn; n is not known to be their size, and they may be longer.
  const auto in_turn = [](A a, I n, I steps) {
    A u = a, v = a;
    const auto step = [&](A& to, A& from) {
      FOR(1, n - 1, [&](I i) { to = to.set(i, from[i] + 0.1 * from[i] * (from[i - 1] - from[i + 1])); });
    };
    FOR(0, steps, [&](I) {
      step(v, u);
      step(u, v);
    });
    return squares(u) + squares(v);
  };
  const auto plate = [](A a, I n, I steps) {  // n rows of n
    A u = a, v = a;
    FOR(0, steps, [&](I) {
      FOR(1, n - 1, [&](I i) {
        FOR(1, n - 1, [&](I j) {
          const I k = i * n + j;
          v = v.set(k, u[k] + 0.1 * u[k] * (u[k - 1] + u[k + 1] + u[k - n] + u[k + n]));
        });
      });
      std::swap(u, v);
    });
    return squares(u);
  };
  const auto check = [](const auto& f, const Kept& expected_kept, auto size) {
    const auto g = grad<0>(f);
    const auto fast = compile(g, {.target = Target::cpp}), plain = compile(g, {.target = Target::c});
    CHECK(kept(plain.source("ir")) == expected_kept);
    for (const std::int64_t n : {0, 1, 2, 3, 5, 21})
      for (const std::int64_t more : {0, 1, 60}) {
        CAPTURE(n, more);
        const std::vector<double> x = wave(static_cast<std::size_t>(size(n) + more)),
                                  expected = eager(g)(x, n, 3);
        for (const std::vector<double>& got : {fast(x, n, 3), plain(x, n, 3)})
          for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-11));
      }
  };
  check(in_turn, {2, 0}, [](std::int64_t n) { return n; });
  check(plate, {1, 0}, [](std::int64_t n) { return n * n; });

  // A loop that ends long before it starts reads nothing, so no part is kept.
  const auto up_to = [](A a, I end, I steps) {
    A u = a, v = a;
    const auto step = [&](A& to, A& from) {
      FOR(2, end, [&](I i) { to = to.set(i, from[i] + 0.1 * from[i] * (from[i] - 0.5 * from[i + 1])); });
    };
    FOR(0, steps, [&](I) {
      step(v, u);
      step(u, v);
    });
    return squares(u) + squares(v);
  };
  const auto g = grad<0>(up_to);
  CHECK(kept(compile(g, {.target = Target::c}).source("ir")) == Kept{2, 0});
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  const std::vector<double> x = wave(30);
  for (const Target target : {Target::c, Target::cpp})
    for (const std::int64_t end : {least, least + 1, least + 2, least / 2, std::int64_t{0}, std::int64_t{2}, std::int64_t{29}}) {
      CAPTURE(end);
      const std::vector<double> expected = eager(g)(x, end, 2), got = compile(g, {.target = target})(x, end, 2);
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-11));
    }
}

TEST_CASE("tape: an element that was just set is what was set", "[tape]") {
  const auto read_back = [](A x, I n) {
    A a = x;
    D total = 0.0;
    FOR(0, n, [&](I i) {
      a = a.set(2 * i + 1, sin(a[2 * i + 1]) * x[i]).set(2 * i, 1.0);
      total += a[1 + i * 2] * a[2 * i + 1] * a[2 * i];
    });
    return total + squares(a);
  };
  const auto by_name = [](A x, I n) {
    A a = x;
    D total = 0.0;
    FOR(0, n, [&](I i) {
      const D now = sin(a[2 * i + 1]) * x[i];
      a = a.set(2 * i + 1, now).set(2 * i, 1.0);
      total += now * now;
    });
    return total + squares(a);
  };
  const auto first = compile(grad<0>(read_back), {.target = Target::c});
  const auto second = compile(grad<0>(by_name), {.target = Target::c});
  const std::vector<double> x = wave(20), expected = eager(grad<0>(by_name))(x, 10);
  for (const std::vector<double>& got : {first(x, 10), second(x, 10)})
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
  CHECK(kept(first.source("ir")) == kept(second.source("ir")));
}

TEST_CASE("tape: a while loop that counts down keeps no more than FOR", "[tape]") {
  const auto by_while = [](A x) {
    A a = fill(D(0.7), x.size());
    I i = x.size() - 2;
    WHILE([&] { return i >= 0; },
          [&] {
            a = a.set(i, x[i] * a[i + 1] * a[i + 1]);
            i = i - 1;
          });
    return squares(a);
  };
  const auto g = compile(grad(by_while), {.target = Target::c});
  const std::vector<double> x = wave(9), got = g(x), expected = eager(grad(by_while))(x);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
  CHECK(kept(g.source("ir")) == Kept{0, 0});
}

TEST_CASE("tape: an inner sum of an independent iteration is computed once, with its derivative", "[tape]") {
  const auto rows = [](auto f) {
    return [f](M a) {
      return FOR(0, a.dim(0), 0.0, [&](I i, D sum) {
        return sum + f(FOR(0, a.dim(1), 0.0, [&](I j, D row) {
                 const D x = a(i, j) * a(i, 0);
                 return row + sin(x) * x;
               }));
      });
    };
  };
  const auto loops = [](auto f) {
    const auto df = compile(grad(f), {.target = Target::c});
    for (const std::int64_t m : {0, 1, 3})
      for (const std::int64_t n : {1, 2, 7}) {
        const std::vector<double> x = wave(static_cast<std::size_t>(m * n));
        const TensorView<const double> a(x.data(), {m, n});
        const auto got = df(a), expected = eager(grad(f))(a);
        for (std::size_t i = 0; i < x.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
      }
    return lantern::test::loops_in(df.source("ir"));
  };
  CHECK(loops(rows([](D row) { return 2.0 * row; })) == 2);
  CHECK(loops(rows([](D row) { return exp(row); })) == 3);  // the sum is asked for first
}

TEST_CASE("tape: arrays that give way to others are not kept whole for a few elements", "[tape]") {
  // The table is updated at one place in each step; what is read of it must not keep all of it.
  const auto table = [](A a, I steps) {
    return squares(FOR(0, steps, a, [&](I t, A s) {
      const D sum = FOR(0, 3, 0.0, [&](I k, D so_far) { return so_far + s[k] * s[k] * s[k + 1]; });
      return s.set(t, 0.1 * sum);
    }));
  };
  const auto compiled = compile(grad<0>(table), {.target = Target::cpp, .opt = 3});
  CHECK(kept(compiled.source("ir")).arrays == 0);
  const auto expected = eager(grad<0>(table))(wave(9), 5), got = compiled(wave(9), 5);
  for (std::size_t i = 0; i < 9; ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
}

namespace {

std::string simplified(const std::string& text) {
  const auto module = ir::parse(text);
  ir::verify(*module);
  passes::simplify(*module);
  ir::verify(*module);
  return ir::print(*module);
}

/// Two loops of n iterations, of which the first pushes %p to tape 1 for the second to pop as %q.
std::string two_loops(const std::string& state, const std::string& iteration, const std::string& back) {
  return "entry @f\n\nfun @f(%x: f64[?], %n: i64) -> f64[?], f64 {\n  %one = constant 1 : i64\n  %zero = "
         "constant 0 : i64\n  %none = constant 0 : f64\n  %start = " +
         state +
         "\n  %i1, %s1 = loop %zero, %start : i64, f64[?] while (%ic: i64, %sc: f64[?]) {\n    %less = lt "
         "%ic, %n : bool\n    yield %less\n  } do (%i: i64, %s: f64[?]) {\n" +
         iteration +
         "    push[1] %s\n    %after = add %i, %one : i64\n    yield %after, %next\n  }\n  %m1, %d1 = loop "
         "%n, %none : i64, f64 while (%mc: i64, %dc: f64) {\n    %more = lt %zero, %mc : bool\n    yield "
         "%more\n  } do (%m: i64, %d: f64) {\n    %q = pop[1] : f64[?]\n" +
         back + "    %before = sub %m, %one : i64\n    yield %before, %r\n  }\n  yield %s1, %d1\n}\n";
}

const std::string set = "    %v = get %s, %i : f64\n    %next = set %s, %i, %v : f64[?]\n";
const std::string size = "    %k = dim[0] %q : i64\n    %c = cast[f64] %k : f64\n    %r = add %d, %c : f64\n";

}  // namespace

TEST_CASE("tape: what is popped and not read is not pushed", "[tape]") {
  const std::string text = simplified(two_loops("copy %x : f64[?]", set, "    %r = add %d, %none : f64\n"));
  CHECK(count(text, "push[") == 0);
  CHECK(count(text, "pop[") == 0);
  // Read once, it stays.
  CHECK(count(simplified(two_loops("copy %x : f64[?]", set,
                                   "    %e = get %q, %zero : f64\n    %r = add %d, %e : f64\n")),
              "push[1]") == 1);
}

TEST_CASE("tape: what is popped for its shape alone is not pushed", "[tape]") {
  CHECK(count(simplified(two_loops("copy %x : f64[?]", set, size)), "push[") == 0);
  // Also where iterations make the array anew, of the same size.
  CHECK(
      count(simplified(two_loops("zeros_like %x : f64[?]",
                                 "    %k0 = dim[0] %x : i64\n    %next = fill %none, %k0 : f64[?]\n", size)),
            "push[") == 0);
  // Another shape in every iteration: it has to be kept.
  CHECK(count(simplified(two_loops("copy %x : f64[?]", "    %next = concat %s, %x : f64[?]\n", size)),
              "push[1]") == 1);
}
