// Arrays that change places from step to step: which copies leave out the elements that a step sets
// (partial_copies), and which adjoints are not set to zero because the next step replaces them
// (scatter_to_gather).
#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "../lanes.hpp"
#include "../occurrences.hpp"
#include "around_pass.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using S = Rep<Array<float>>;
using M = Rep<Tensor<double, dyn, dyn>>;

template <class T>
void exchange(T& a, T& b) {
  const T kept = a;
  a = b;
  b = kept;
}

/// Two buffers in one dimension. Each step computes the elements `from`, ..., `to` - 1.
D line(A u, I from, I to, I steps) {
  A w = u * 2.0;
  FOR(0, steps, [&](I) {
    FOR(from, to, [&](I i) { w = w.set(i, sin(u[i]) * u[i - 1]); });
    exchange(u, w);
  });
  return sum(u * u) + sum(w);
}
/// The same in two dimensions of a flat array.
D plane(A u, I n, I steps) {
  A w = u;
  FOR(0, steps, [&](I) {
    FOR(1, n - 1, [&](I i) {
      FOR(2, n - 1, [&](I j) {
        const I k = i * n + j;
        w = w.set(k, u[k] * u[k - 1] + 0.3 * u[k - n] * u[k + n]);
      });
    });
    exchange(u, w);
  });
  return sum(u * u) + sum(w);
}
/// Column by column.
D columns(A u, I n, I steps) {
  A w = u;
  FOR(0, steps, [&](I) {
    FOR(1, n - 1, [&](I i) { FOR(1, n - 1, [&](I j) { w = w.set(j * n + i, u[j * n + i] * u[i]); }); });
    exchange(u, w);
  });
  return sum(u * u) + sum(w);
}
/// A matrix and its last two versions.
D membrane(M u, I steps) {
  M before = u, next = u * 0.5;
  const I m = u.dim(0), n = u.dim(1);
  FOR(0, steps, [&](I) {
    FOR(1, m - 1, [&](I i) {
      FOR(1, n - 1,
          [&](I j) { next = next.set(i, j, u(i, j) * u(i, j - 1) - before(i, j) + 0.1 * u(i + 1, j)); });
    });
    exchange(before, u);
    exchange(u, next);
  });
  return sum(u * u) + sum(before * next);
}
/// The box is another one in each row, or in each step: `next` is what it was there.
D triangle(A u, I n, I steps) {
  A w = u;
  FOR(0, steps, [&](I t) {
    FOR(1, n, [&](I i) { FOR(t, i, [&](I j) { w = w.set(i * n + j, u[i * n + j] * u[j]); }); });
    exchange(u, w);
  });
  return sum(u * u) + sum(w);
}
/// Every second element; what is made depends on what was there; elements are read before they are set.
template <int which>
D no_box(A u, I n, I steps) {
  A w = u;
  FOR(0, steps, [&](I) {
    FOR(0, n / 2, [&](I i) {
      const I k = which == 0 ? 2 * i : i;
      if constexpr (which == 0)
        w = w.set(k, u[k] * u[k]);
      else if constexpr (which == 1)
        w = w.set(k, u[k] * u[k] + w[k]);
      else
        w = w.set(k, u[k] * w[n / 2 - 1 - k]);
    });
    exchange(u, w);
  });
  return sum(u * u) + sum(w);
}
/// A step that sets some elements where a condition holds.
D sometimes(A u, I n, I steps) {
  A w = u;
  FOR(0, steps, [&](I) {
    FOR(1, n - 1, [&](I i) { IF(u[i] > 0.1, [&] { w = w.set(i, u[i] * u[i - 1]); }); });
    exchange(u, w);
  });
  return sum(u * u) + sum(w);
}
Rep<float> narrow(S u, I n, I steps) {
  S w = u;
  FOR(0, steps, [&](I) {
    FOR(1, n - 1, [&](I i) { w = w.set(i, u[i] * u[i - 1]); });
    exchange(u, w);
  });
  return sum(u * u) + sum(w);
}

/// Three buffers in one dimension, which the last step leaves in `u`, `before` and, where it is asked for,
/// `next`.
template <bool all>
D leapfrog(A u, I from, I to, I steps) {
  A before = u, next = all ? u * 0.0 : fill(D(0.0), u.size());
  D seen = 0.0;
  FOR(0, steps, [&](I) {
    FOR(from, to, [&](I i) { next = next.set(i, u[i] * u[i - 1] - before[i]); });
    exchange(before, u);
    exchange(u, next);
    seen = seen + u[0];
  });
  return sum(u * u) + seen + (all ? sum(next * before) : D(0.0));
}
/// Sums of differences that a step keeps, in two buffers.
D limited(A u, I from, I to, I steps) {
  A w = u, f = u * 0.0;
  FOR(0, steps, [&](I) {
    FOR(from, to, [&](I i) { f = f.set(i, max(u[i] - u[i - 1], 0.0) * u[i]); });
    FOR(from + 1, to, [&](I i) { w = w.set(i, u[i] - 0.2 * (f[i] - f[i - 1])); });
    exchange(u, w);
  });
  return sum(u * u) + sum(w * f);
}
/// Several iterations store to one element. The last store counts.
D overwritten(A u, I n, I steps) {
  A before = u, next = u * 0.0;
  FOR(0, steps, [&](I) {
    FOR(0, n, [&](I i) { next = next.set(i / 2, u[i] * u[i] - before[i / 2]); });
    exchange(before, u);
    exchange(u, next);
  });
  return sum(u * u) + sum(before);
}

template <class T>
std::vector<T> draw(std::int64_t n) {
  std::mt19937 generator(static_cast<unsigned>(n));
  std::uniform_real_distribution<T> distribution(T(0.2), T(1.1));
  std::vector<T> all(static_cast<std::size_t>(n));
  for (T& x : all) x = distribution(generator);
  return all;
}

template <class T>
void same(const std::vector<T>& got, const std::vector<T>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(expected[i]).epsilon(std::is_same_v<T, float> ? 1e-4 : 1e-10));
  }
}

/// A program's value and gradient, with the passes and without.
template <class F>
class Checked {
 public:
  explicit Checked(F f)
      : f_(f),
        slopes_(compile(grad<0>(f), options({}))),
        without_(compile(grad<0>(f), options({"partial_copies", "scatter_to_gather"}))),
        value_(compile(f, options({}))) {}

  template <class X, class... Others>
  void operator()(const X& x, Others... others) {
    const auto expected = eager(grad<0>(f_))(x, others...);
    compare(slopes_(x, others...), expected);
    compare(without_(x, others...), expected);
    CHECK(value_(x, others...) == Approx(eager(f_)(x, others...)).epsilon(1e-4));
  }

 private:
  static CompileOptions options(std::vector<std::string> without) {
    CompileOptions o{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()};
    o.disabled_passes = std::move(without);
    return o;
  }
  template <class T>
  static void compare(const std::vector<T>& got, const std::vector<T>& expected) {
    same(got, expected);
  }
  static void compare(const TensorValue<double>& got, const TensorValue<double>& expected) {
    same(got.data, expected.data);
  }

  F f_;
  decltype(compile(grad<0>(std::declval<F>()))) slopes_, without_;
  decltype(compile(std::declval<F>())) value_;
};

template <class F>
std::size_t partial_copies_of(F f) {
  return count(around_pass("partial_copies", grad<0>(f)).second, "= copy ");
}

}  // namespace

TEST_CASE("partial_copies: a box that is the same in each step is left out", "[passes]") {
  CHECK(partial_copies_of(plane) > 0);
  CHECK(partial_copies_of(membrane) == 1);
  CHECK(partial_copies_of(triangle) == 0);
  CHECK(partial_copies_of(no_box<0>) == 0);
  CHECK(partial_copies_of(no_box<1>) == 0);
  CHECK(partial_copies_of(no_box<2>) == 0);
  CHECK(partial_copies_of(sometimes) == 0);
}

TEST_CASE("partial_copies: gradients in one dimension", "[passes]") {
  Checked a(line);
  Checked c(no_box<0>), d(no_box<1>), e(no_box<2>), f(sometimes);
  Checked b(narrow);
  for (const std::int64_t n : {0, 1, 2, 3, 17, 18, 19, 33, 70})
    for (const std::int64_t steps : {0, 1, 2, 5}) {
      CAPTURE(n, steps);
      const auto x = draw<double>(n);
      for (const std::int64_t from : {1, 2, 20})
        for (const std::int64_t before : {0, 1, 3}) a(x, from, n - before, steps);
      constexpr auto least = std::numeric_limits<std::int64_t>::min();
      a(x, std::int64_t{2}, least, steps), a(x, std::int64_t{2}, least + 1, steps);
      a(x, std::numeric_limits<std::int64_t>::max(), least + 2, steps);
      b(draw<float>(n), n, steps);
      c(x, n, steps), d(x, n, steps), e(x, n, steps), f(x, n, steps);
    }
}

TEST_CASE("partial_copies: gradients in two dimensions", "[passes]") {
  Checked a(plane), b(columns), c(triangle);
  Checked d(membrane);
  for (const std::int64_t n : {1, 2, 3, 4, 5, 19, 20, 37})
    for (const std::int64_t steps : {0, 1, 2, 3}) {
      CAPTURE(n, steps);
      const auto x = draw<double>(n * n);
      a(x, n, steps), b(x, n, steps), c(x, n, steps);
      for (const std::int64_t m : {std::int64_t{1}, std::int64_t{3}, n, n + 1}) {
        TensorValue<double> u({m, n}, 0.0);
        u.data = draw<double>(m * n);
        d(u, steps);
      }
    }
}

TEST_CASE("scatter_to_gather: adjoints that the next step replaces are not set to zero", "[passes]") {
  const auto zeros_stored = [](auto f) {
    return count(compile(grad<0>(f), {.target = Target::c}).source("c"), "] = 0.0;");
  };
  CHECK(zeros_stored(leapfrog<false>) == 0);
  CHECK(zeros_stored(leapfrog<true>) == 1);  // behind the loop: what `next` began with has an adjoint
  CHECK(zeros_stored(overwritten) > 0);
  Checked a(leapfrog<false>), b(leapfrog<true>), c(limited);
  Checked d(overwritten);
  for (const std::int64_t n : {1, 2, 3, 5, 18, 19, 33})
    for (const std::int64_t steps : {0, 1, 2, 3, 4, 7}) {
      CAPTURE(n, steps);
      const auto x = draw<double>(n);
      for (const std::int64_t from : {1, 2})
        for (const std::int64_t to : {n, n - 1, std::numeric_limits<std::int64_t>::min() + 7})
          a(x, from, to, steps), b(x, from, to, steps), c(x, from, to, steps);
      d(x, n, steps);
    }
}

TEST_CASE("rotating buffers: second derivatives", "[passes]") {
  const auto second = [](auto f) {
    return [f](A u, I n, I steps) { return sum(grad<0>(f)(u, n, steps) * u); };
  };
  const auto steps_of = [](A u, I n, I steps) { return leapfrog<true>(u, 1, n, steps); };
  const auto grid = [](A u, I n, I steps) { return plane(u, n, steps); };
  Checked a(sig<double(Array<double>, std::int64_t, std::int64_t)>(second(steps_of)));
  Checked b(sig<double(Array<double>, std::int64_t, std::int64_t)>(second(grid)));
  for (const std::int64_t n : {1, 2, 3, 18, 19})
    for (const std::int64_t steps : {0, 1, 3}) {
      CAPTURE(n, steps);
      a(draw<double>(n), n, steps);
      b(draw<double>(n * n), n, steps);
    }
}

TEST_CASE("partial_copies: an element outside is an error", "[passes]") {
  const auto slopes = compile(grad<0>(line), {.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()});
  const auto x = draw<double>(40);
  for (const std::int64_t to :
       {std::int64_t{41}, std::int64_t{1000}, std::numeric_limits<std::int64_t>::max()})
    CHECK_THROWS_AS(slopes(x, 1, to, 3), Error);
  CHECK_THROWS_AS(slopes(x, -7, 40, 3), Error);
}
