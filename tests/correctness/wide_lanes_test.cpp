// Vectors of many registers: elements gathered and scattered half by half, and functions of single lanes.
#include <catch2/catch.hpp>

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

template <class F, class... In>
void same(F f, const In&... in) {
  const auto expected = compile(f, {.target = Target::c, .opt = 0})(in...);
  for (const bool strict : {false, true}) {
    const auto got = compile(
        f, {.target = Target::cpp, .opt = 3, .strict_math = strict, .lanes = lanes_under_test()})(in...);
    if constexpr (std::is_same_v<decltype(got), const double>) {
      CHECK(agree::close(got, expected, 1e-11));
    } else if constexpr (requires { got.data[0]; }) {
      check_close(got.data, expected.data);
    } else {
      check_close(got, expected);
    }
  }
}

}  // namespace

TEST_CASE("wide lanes: the same numbers as one after another", "[lanes]") {
  for (const std::size_t n : {1u, 7u, 16u, 63u, 64u, 65u, 130u}) {
    CAPTURE(n);
    const std::vector<double> x = numbers(n * 5, 0.3), c = numbers(3 * 5, 0.9), line = numbers(n, 0.2);
    same(nearest, matrix(x, n, 5), matrix(c, 3, 5));
    same(pulls, line);
    std::vector<std::int64_t> at(n);
    for (std::size_t i = 0; i < n; ++i)
      at[i] = static_cast<std::int64_t>((i * 7) % std::min<std::size_t>(n, 5));
    same(columns, matrix(x, n, 5), at, static_cast<std::int64_t>(std::min<std::size_t>(n, 4)));
    same(grad<0>(nearest), matrix(x, n, 5), matrix(c, 3, 5));
  }
}
