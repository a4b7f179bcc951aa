// Vectors of many registers: elements gathered and scattered half by half, functions of single lanes, and
// branches that most lanes do not take.
#include <catch2/catch.hpp>
#include <cmath>

#include "../lanes.hpp"
#include "row_programs.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

/// The distance of each row to the nearest centre: rows are packed, a row a lane.
D nearest(M x, M c) {
  return total(x.dim(0), [&](I i) {
    return FOR(0, c.dim(0), D(1e30), [&](I q, D best) {
      return min(best, total(x.dim(1), [&](I j) {
                   const D d = x(i, j) - c(q, j);
                   return d * d;
                 }));
    });
  });
}
/// Functions without a version for several lanes, in sums of so many lanes as registers hold.
A pulls(A x) {
  return FOR(0, x.size(), x, [&](I i, A w) {
    const D pull = total(x.size(), [&](I j) {
      const D d = x[j] - x[i], r = d * d + 0.01;
      return d / (r * sqrt(r)) + floor(3.0 * d) - abs(d) + pow(r, 0.3) + atan2(d, r);
    });
    return w.set(i, w[i] + 0.01 * pull);
  });
}
/// Columns read and written, at places from a list.
M columns(M x, Rep<Array<std::int64_t>> at, I steps) {
  return FOR(0, x.dim(0), x, [&](I i, M w) {
    const D s = FOR(0, steps, D(0.0), [&](I k, D v) { return v + x(i, at[k]) * x(at[i], 0); });
    return w.set(i, 1, s).set(i, 0, s * s);
  });
}

/// Much to do where a weight is not 0, which it is for most; where it is, there may be no such element.
D weighted(M weights, A x, Rep<Array<std::int64_t>> at) {
  return total(weights.dim(0), [&](I i) {
    return FOR(0, weights.dim(1), D(0.0), [&](I k, D sum) {
      const D w = weights(i, k);
      return IF(
          w == 0.0, [&] { return sum; },
          [&] {
            const D y = x[at[k]], r = sqrt(y * y + x[i] * x[i] + 0.1);
            return sum + w * (sin(y) * exp(-r) / r + log(r) * cast<double>(k));
          });
    });
  });
}
/// The same of each row's own element.
D fading(M weights, A x) {
  return total(weights.dim(0), [&](I i) {
    const D own = x[i];
    return FOR(0, weights.dim(1), D(0.0), [&](I k, D sum) {
      const D w = weights(i, k);
      return IF(
          w == 0.0, [&] { return sum; },
          [&] {
            const D y = own * w * cast<double>(k + 1), r = sqrt(y * y + 0.1);
            return sum + w * (sin(y) * exp(-r) / r + log(r));
          });
    });
  });
}
/// And with little to do.
D seldom(M weights, A x) {
  return total(weights.dim(0), [&](I i) {
    return FOR(0, weights.dim(1), D(0.0), [&](I k, D sum) {
      const D w = weights(i, k);
      return IF(
          w == 0.0, [&] { return sum; }, [&] { return sum + w * x[i]; });
    });
  });
}

/// Every second, third and fourth element is written and added to; those between stay.
A every_so_many(A x, A y) {
  const I n = x.size();
  FOR(0, n, [&](I i) { y = y.set(2 * i + 1, exp(x[i]) + y[2 * i + 1]); });
  FOR(0, n, [&](I i) { y = y.set(3 * i, y[3 * i] + sin(x[i])); });
  FOR(0, n, [&](I i) { y = y.set(4 * i + 2, y[4 * i + 2] + x[i] * x[i]); });
  return y;
}
/// From the last element to the first.
A backwards(A x, A y) {
  const I n = x.size();
  FOR(0, n, [&](I i) { y = y.set(n - 1 - i, exp(x[n - 1 - i]) * y[n - 1 - i] + x[i]); });
  return y;
}
/// The same of integers.
Rep<Array<std::int64_t>> every_so_many_integers(Rep<Array<std::int64_t>> x, Rep<Array<std::int64_t>> y) {
  const I n = x.size();
  FOR(0, n, [&](I i) { y = y.set(2 * i, x[i] * x[i]); });
  FOR(0, n, [&](I i) { y = y.set(3 * i + 1, y[3 * i + 1] + 7 * x[i]); });
  return y;
}

/// Adjoints go to elements that overlap: of rows, each made of the one above, and of an array that changes in
/// place, from the first element or from the last.
auto neighbours_above(int a, int b) {
  return [a, b](A x) {
    const I n = x.size();
    const M first = FOR(0, n, fill(D(0.0), I(5), n), [&](I j, M m) { return m.set(0, j, x[j]); });
    const M all = FOR(1, 5, first, [&](I i, M rows) {
      return FOR(5, n - 5, rows, [&](I j, M m) {
        return m.set(i, j, sin(m(i - 1, j + a)) * m(i - 1, j) - 0.3 * m(i - 1, j + b) * m(i - 1, j + b));
      });
    });
    return FOR(0, n, D(0.0), [&](I j, D s) { return s + all(4, j) * x[j]; });
  };
}
auto in_place(int a, bool back) {
  return [a, back](A x) {
    const I n = x.size();
    const A all = FOR(0, 4, x, [&](I, A u) {
      return FOR(0, n - 5, u, [&](I k, A v) {
        const I i = back ? n - 1 - k : k;
        return v.set(i, max(0.9 * v[i] + 0.2 * v[i + a], 0.5 * x[i]));
      });
    });
    return FOR(0, n, D(0.0), [&](I j, D s) { return s + all[j] * all[j]; });
  };
}

/// The numbers of a function in lanes: those of one after another. Compiled once, for all inputs.
template <class F>
class Same {
 public:
  explicit Same(F f) : slow_(compile(f, {.target = Target::c, .opt = 0})) {
    for (const bool strict : {false, true})
      fast_.push_back(compile(f, {.target = Target::cpp, .opt = 3, .strict_math = strict, .lanes = lanes_under_test()}));
  }
  template <class... In>
  void operator()(const In&... in) const {
    const auto expected = slow_(in...);
    for (const auto& fast : fast_) {
      const auto got = fast(in...);
      if constexpr (std::is_same_v<decltype(got), const double>) {
        CHECK(agree::close(got, expected, 1e-11));
      } else if constexpr (requires { got.data[0]; }) {
        check_close(got.data, expected.data);
      } else {
        check_close(got, expected);
      }
    }
  }

 private:
  using Call = decltype(compile(std::declval<F>()));
  Call slow_;
  std::vector<Call> fast_;
};

}  // namespace

TEST_CASE("wide lanes: the same numbers as one after another", "[lanes]") {
  const Same near(nearest);
  const Same pull(pulls);
  const Same by_columns(columns);
  const Same slopes(grad<0>(nearest));
  for (const std::size_t n : {1u, 7u, 16u, 63u, 64u, 65u, 130u}) {
    CAPTURE(n);
    const std::vector<double> x = numbers(n * 5, 0.3), c = numbers(3 * 5, 0.9), line = numbers(n, 0.2);
    near(matrix(x, n, 5), matrix(c, 3, 5));
    pull(line);
    std::vector<std::int64_t> at(n);
    for (std::size_t i = 0; i < n; ++i)
      at[i] = static_cast<std::int64_t>((i * 7) % std::min<std::size_t>(n, 5));
    by_columns(matrix(x, n, 5), at, static_cast<std::int64_t>(std::min<std::size_t>(n, 4)));
    slopes(matrix(x, n, 5), matrix(c, 3, 5));
  }
}

TEST_CASE("wide lanes: every second, third or fourth element, and from the last to the first", "[lanes]") {
  const CompileOptions wide{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()};
  const auto f = compile(every_so_many, wide);
  const auto integers = compile(every_so_many_integers, wide);
  const auto added = [](A c, A d) { return sum(every_so_many(c, d)); };
  const Same every(every_so_many);
  const Same every_c(grad<0>(added));
  const Same every_d(grad<1>(added));
  for (const std::size_t n : {1u, 7u, 16u, 63u, 64u, 65u, 130u}) {
    CAPTURE(n);
    const std::vector<double> x = numbers(n, 0.3);
    std::vector<double> y = numbers(4 * n - 1, 0.7);
    for (std::size_t i = 3; i < y.size(); i += 5) y[i] = -0.0;
    every(x, y);
    const std::vector<double> z = f(x, y);
    for (std::size_t i = 0; i < y.size(); ++i)  // what is not written keeps its bits
      if (i % 3 != 0 && i % 4 != 2 && (i % 2 != 1 || i > 2 * n))
        CHECK(std::signbit(z[i]) == std::signbit(y[i]));
    every_c(x, y);
    every_d(x, y);
    std::vector<std::int64_t> whole(n), into(4 * n);
    for (std::size_t i = 0; i < n; ++i) whole[i] = static_cast<std::int64_t>(i * i) - 9;
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = -static_cast<std::int64_t>(i);
    CHECK(integers(whole, into) == eager(every_so_many_integers)(whole, into));
  }
  const auto sums = [](A x, A y) { return sum(backwards(x, y)); };
  const Same back_all(backwards);
  const Same back_x(grad<0>(sums));
  const Same back_y(grad<1>(sums));
  for (const std::size_t n : {1u, 7u, 16u, 63u, 64u, 65u, 130u}) {
    CAPTURE(n);
    back_all(numbers(n, 0.3), numbers(n, 0.9));
    back_x(numbers(n, 0.3), numbers(n, 0.9));
    back_y(numbers(n, 0.3), numbers(n, 0.9));
  }
  const std::string back = compile(backwards, {.target = Target::cpp, .opt = 3, .lanes = 8}).source();
  CHECK(back.find("load_back") != std::string::npos);
  CHECK(back.find("store_back") != std::string::npos);
  // A derivative adds to them.
  const auto products = [](A x, A y) {
    return total(x.size(), [&](I i) { return x[i] * exp(y[2 * i]) + y[3 * i + 1] * y[4 * i] * x[i]; });
  };
  const Same products_x(grad<0>(products));
  const Same products_y(grad<1>(products));
  for (const std::size_t n : {1u, 7u, 16u, 63u, 64u, 65u, 130u}) {
    CAPTURE(n);
    products_x(numbers(n, 0.3), numbers(4 * n, 0.9));
    products_y(numbers(n, 0.3), numbers(4 * n, 0.9));
  }
  const std::string adds = compile(grad<1>(products), {.target = Target::cpp, .opt = 3, .lanes = 8}).source();
  for (const std::string step : {"2", "3", "4"}) CHECK(adds.find("add_every" + step) != std::string::npos);
}

TEST_CASE("wide lanes: sums of elements that overlap", "[lanes]") {
  const auto check = [](const auto& program, const std::string& joined) {
    const auto f = grad<0>(sig<double(Array<double>)>(program));
    const auto slow = eager(f);
    const auto fast = compile(f, {.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()});
    for (const std::size_t n : {0u, 6u, 11u, 26u, 43u, 75u}) {
      CAPTURE(n, joined);
      check_close(fast(numbers(n, 0.4)), slow(numbers(n, 0.4)));
    }
    if (lanes_under_test() == 8) CHECK(fast.source().find(joined) != std::string::npos);
  };
  check(neighbours_above(1, -1), "lt_joined_down_add2_add1_add0_");
  check(neighbours_above(-3, 1), "lt_joined_down_add0_add3_add4_");
  check(neighbours_above(5, -2), "lt_joined_down_add2_add0_");  // the third is too far
  check(in_place(1, false), "lt_joined_down_set0_add1_");
  check(in_place(-3, true), "lt_joined_back_up_set3_add0_");
}

TEST_CASE("wide lanes: sums of the same elements, from the last to the first", "[lanes]") {
  const auto program = [](A x, I n) {
    A a = x, b = fill(D(0.0), n * n), c = fill(D(0.0), n + 2);
    FOR(1, n, [&](I i) {
      FOR(1, n - 1, [&](I k) {
        const I j = n - 1 - k;
        b = b.set(i * n + j, b[i * n + j] + 0.4 * x[i * n + j]);
        c = c.set(j, c[j] + IF(j < n - 1, [&] { return sin(b[i * n + j]); }, [&] { return 0.2 * x[i * n + j]; }));
      });
      FOR(1, n - 1, [&](I j) { a = a.set(i * n + j, a[i * n + j] + sin((b[i * n + j] + c[j + 1]) * b[i * n + j])); });
    });
    return sum(a * a);
  };
  const auto f = grad<0>(sig<double(Array<double>, std::int64_t)>(program));
  const auto fast = compile(f, {.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()});
  for (const std::int64_t n : {2, 5, 21}) {
    const std::vector<double> x = numbers(static_cast<std::size_t>(n * n), 0.4);
    check_close(fast(x, n), eager(f)(x, n));
  }
}

TEST_CASE("wide lanes: a side of a branch that no lane takes is left out", "[lanes]") {
  const Same sum_of(weighted);
  const Same weights(grad<0>(weighted));
  const Same values(grad<1>(weighted));
  const Same fade(fading);
  const Same fade_x(grad<1>(fading));
  const Same rarely(seldom);
  for (const std::size_t n : {1u, 7u, 16u, 63u, 64u, 65u, 130u}) {
    CAPTURE(n);
    const std::size_t columns = 6;
    std::vector<double> w(n * columns, 0.0);
    for (std::size_t k = 0; k + 1 < columns; ++k)
      w[(k * 29) % n * columns + k] = 0.3 + static_cast<double>(k);
    // The last column has an element nowhere, and nobody has a weight for it.
    const std::vector<std::int64_t> at{0, 0, static_cast<std::int64_t>(n) - 1, 0, 0, 1'000'000};
    const std::vector<double> x = numbers(n, 0.3);
    sum_of(matrix(w, n, columns), x, at);
    weights(matrix(w, n, columns), x, at);
    values(matrix(w, n, columns), x, at);
    fade(matrix(w, n, columns), x);
    fade_x(matrix(w, n, columns), x);
    rarely(matrix(w, n, columns), x);
    const std::vector<double> none(n * columns, 0.0);
    sum_of(matrix(none, n, columns), x, at);
  }
  const CompileOptions wide{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()};
  CHECK(compile(fading, wide).source("ir").find("lane_any") != std::string::npos);
  CHECK(compile(seldom, wide).source("ir").find("lane_any") == std::string::npos);
}
