// Loops over directions, in vectors of many registers: the numbers are those of one direction after another.
#include <catch2/catch.hpp>

#include "../lanes.hpp"
#include "agree.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

/// 1 at the place of the direction, else 0.
A direction(const I& n, const I& d) {
  return FOR(0, n, fill(D(0.0), n), [&](I j, A seed) { return seed.set(j, select(j == d, D(1.0), 0.0)); });
}

/// For each direction (the lanes) and row: three sums over the row's entries that are not zero, and a product
/// of what the sums come to.
M moved(M w, A a) {
  return FOR(0, a.size(), fill(D(0.0), w.dim(0), a.size()), [&](I d, M all) {
    const A seed = direction(a.size(), d);
    return FOR(0, w.dim(0), all, [&](I r, M next) {
      const auto [x, y, z] = FOR(0, a.size(), std::tuple(D(0.0), D(1.0), D(0.0)), [&](I k, D u, D v, D t) {
        const D weight = w(r, k);
        return IF(
            weight == 0.0, [&] { return std::tuple(u, v, t); },
            [&] {
              const D s = weight * seed[k] + a[k];
              return std::tuple(u + s, v + weight * u, t + s * s);
            });
      });
      return next.set(r, d, x * y - z);
    });
  });
}

/// One sum: its vector stays in registers as it is.
M one_sum(M w, A a) {
  return FOR(0, a.size(), fill(D(0.0), w.dim(0), a.size()), [&](I d, M all) {
    const A seed = direction(a.size(), d);
    return FOR(0, w.dim(0), all, [&](I r, M next) {
      const D sum = FOR(0, a.size(), D(0.0), [&](I k, D s) { return s + w(r, k) * seed[k]; });
      return next.set(r, d, sum);
    });
  });
}

/// A sum over the directions: its lanes are added up.
D over_directions(M w, A a) {
  return FOR(0, a.size(), D(0.0), [&](I d, D total) {
    const A seed = direction(a.size(), d);
    const auto [x, y] = FOR(0, a.size(), std::tuple(D(0.0), D(1.0)), [&](I k, D u, D v) {
      const D s = w(0, k) * seed[k] + a[k];
      return std::tuple(u + s * v, v + s * s * u);
    });
    return total + x * y;
  });
}

/// A state that two others start from, exchanged in each iteration: none may take over another's memory.
M exchanged(M w, A a) {
  return FOR(0, a.size(), fill(D(0.0), w.dim(0), a.size()), [&](I d, M all) {
    const A seed = direction(a.size(), d);
    return FOR(0, w.dim(0), all, [&](I r, M next) {
      const D first = seed[0] + 0.5;
      const auto [x, y, z] = FOR(0, a.size(), std::tuple(first, first, first * 2.0), [&](I k, D u, D v, D t) {
        return std::tuple(v * w(r, k) + seed[k], u, t + u * v * seed[k]);
      });
      return next.set(r, d, x - y * z * first);
    });
  });
}

/// Rows of the direction's own are read back after they were written.
M read_back(M w, A a) {
  return FOR(0, a.size(), fill(D(0.0), w.dim(0), a.size()), [&](I d, M all) {
    const A seed = direction(a.size(), d);
    const M own = FOR(0, w.dim(0), fill(D(0.0), w.dim(0), 2), [&](I r, M m) {
      const D before = m(0, 0), s = seed[0] * w(r, 0) + before * 0.25, t = seed[1] - s;
      const M once = m.set(r, 0, s * t + before);
      return once.set(r, 1, once(r, 0) * s - t * before);
    });
    return FOR(0, w.dim(0), all,
               [&](I r, M next) { return next.set(r, d, own(r, 0) - own(r, 1) * seed[0]); });
  });
}

struct Input {
  std::vector<double> w, a;
};

Input input(std::size_t rows, std::size_t n) {
  Input in{std::vector<double>(rows * n), std::vector<double>(n)};
  for (std::size_t i = 0; i < in.w.size(); ++i) in.w[i] = i % 3 == 1 ? 0.0 : 0.125 * double(i % 7) - 0.25;
  for (std::size_t i = 0; i < n; ++i) in.a[i] = 0.0625 * double(i % 5) - 0.125;
  return in;
}

/// The same numbers as without vectors, with and without an incomplete block of lanes.
template <class F>
void check_numbers(F f) {
  const auto fast = compile(f, {.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()});
  const auto slow = compile(f, {.target = Target::c, .opt = 0});
  for (const std::size_t n : {2u, 3u, 4u, 5u, 8u, 26u, 31u, 32u, 33u, 64u, 71u}) {
    const Input in = input(3, n);
    const TensorView<double> w(const_cast<double*>(in.w.data()), {3, static_cast<std::int64_t>(n)});
    const auto got = fast(w, in.a), expected = slow(w, in.a);
    if constexpr (std::is_same_v<decltype(got), const double>) {
      CHECK(agree::close(got, expected, 1e-12));
    } else {
      REQUIRE(got.shape == expected.shape);
      for (std::size_t i = 0; i < got.data.size(); ++i) CHECK(agree::close(got[i], expected[i], 1e-12));
    }
  }
}

}  // namespace

TEST_CASE("directions: the same numbers as one after another", "[passes]") {
  check_numbers(moved);
  check_numbers(one_sum);
  check_numbers(over_directions);
  check_numbers(exchanged);
  check_numbers(read_back);
}
