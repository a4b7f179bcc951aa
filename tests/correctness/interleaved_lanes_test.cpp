// Nests over windows that do not overlap: lanes go along rows, whose vectors are loaded whole, and not across
// them.
#include <catch2/catch.hpp>

#include "against_eager.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

/// Averages and largest numbers of windows of `step` columns and two rows, of a picture in a flat array.
template <int step>
D pooled(A x, A weights, I rows, I columns) {
  D sum = 0.0;
  FOR(0, rows / 2, [&](I i) {
    FOR(0, columns / step, [&](I j) {
      const I above = 2 * i * columns + step * j, below = (2 * i + 1) * columns + step * j;
      const D most = max(max(x[above], x[above + 1]), max(x[below], x[below + 1]));
      sum += weights[i] * most * most + 0.25 * (x[above] + x[above + 1] + x[below] + x[below + 1]) * most;
    });
  });
  return sum;
}
/// Rows of a matrix, read backwards.
D mirrored(M x, A weights) {
  const I rows = x.dim(0), columns = x.dim(1);
  D sum = 0.0;
  FOR(0, rows, [&](I i) { FOR(0, columns, [&](I j) { sum += weights[i] * sin(x(i, columns - 1 - j)); }); });
  return sum;
}
/// Every second element is written.
D spread(A x, I rows, I columns) {
  A y = fill(D(0.0), 2 * rows * columns);
  FOR(0, rows, [&](I i) {
    FOR(0, columns, [&](I j) { y = y.set(2 * (i * columns + j), x[i * columns + j] * x[i * columns + j]); });
  });
  return sum(y * y);
}

/// The largest number of windows of `size` by `size`, by loops; they overlap where steps are shorter.
template <int size, int step>
D largest(A x, A weights, I rows, I columns) {
  D sum = 0.0;
  FOR(0, (rows - size) / step + 1, [&](I i) {
    FOR(0, (columns - size) / step + 1, [&](I j) {
      D most = -1e30;
      FOR(0, size, [&](I p) {
        FOR(0, size, [&](I q) { most = max(most, x[(step * i + p) * columns + step * j + q]); });
      });
      sum += weights[i] * most * most;
    });
  });
  return sum;
}
/// Steps of numbers that lie in pairs, or in threes: each iteration writes and adds to neighbours.
template <int fields>
D beside(A start, A rate, I n, I steps) {
  A now = start, next = start;
  FOR(0, steps, [&](I) {
    FOR(1, n - 1, [&](I i) {
      for (int k = 0; k < fields; ++k) {
        const I at = fields * i + k, other = fields * i + (k + 1) % fields;
        next = next.set(at, now[at] + 0.1 * (now[at - fields] - 2.0 * now[at] + now[at + fields]) -
                                rate[i] * now[at] * now[other]);
      }
    });
    const A last = now;
    now = next;
    next = last;
  });
  return FOR(0, fields * n, D(0.0), [&](I i, D sum) { return sum + now[i] * now[i]; });
}

}  // namespace

TEST_CASE("interleaved lanes: the same numbers", "[vectorise]") {
  const Checked two(pooled<2>), three(pooled<3>), four(pooled<4>);
  const Checked back(mirrored);
  const Checked every_second(spread);
  for (const std::int64_t rows : {0, 1, 2, 9, 36})
    for (const std::int64_t columns : {0, 1, 2, 5, 35, 71}) {
      CAPTURE(rows, columns);
      std::vector<double> x = numbers(static_cast<std::size_t>(rows * columns), 0.3);
      for (std::size_t i = 0; i + 3 < x.size(); i += 3) x[i + 1] = x[i];  // equal ones
      const std::vector<double> weights = numbers(static_cast<std::size_t>(rows), 0.8);
      two(x, weights, rows, columns), three(x, weights, rows, columns), four(x, weights, rows, columns);
      back(matrix(x, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)), weights);
      every_second(x, rows, columns);
    }
}

TEST_CASE("interleaved lanes: vectors are loaded whole", "[vectorise]") {
  for (const std::string& text :
       {compile(pooled<2>, {.target = Target::cpp, .opt = 3, .lanes = 8}).source("cpp"),
        compile(grad<0>(pooled<2>), {.target = Target::cpp, .opt = 3, .lanes = 8}).source("cpp")}) {
    CHECK(text.find("load_every2_f64") != std::string::npos);
    CHECK(text.find("load_strided_f64") == std::string::npos);
  }
}

TEST_CASE("interleaved lanes: windows by loops, and numbers that lie in pairs", "[vectorise]") {
  const Checked overlap(largest<3, 2>), wide(largest<4, 2>), separate(largest<2, 3>), third(largest<4, 3>);
  const Checked pairs(beside<2>), triples(beside<3>), fours(beside<4>);
  for (const std::int64_t rows : {4, 5, 9})
    for (const std::int64_t columns : {4, 6, 35, 36, 71, 150}) {
      CAPTURE(rows, columns);
      std::vector<double> x = numbers(static_cast<std::size_t>(rows * columns), 0.3);
      for (std::size_t i = 0; i + 3 < x.size(); i += 3) x[i + 1] = x[i];  // equal ones
      const std::vector<double> weights = numbers(static_cast<std::size_t>(rows), 0.8);
      overlap(x, weights, rows, columns), wide(x, weights, rows, columns);
      separate(x, weights, rows, columns), third(x, weights, rows, columns);
    }
  for (const std::int64_t n : {2, 3, 9, 18, 40, 77}) {
    CAPTURE(n);
    const std::vector<double> rate = numbers(static_cast<std::size_t>(n), 0.1);
    const auto start = [&](std::int64_t fields) {
      return numbers(static_cast<std::size_t>(fields * n), 0.2);
    };
    pairs(start(2), rate, n, 3), triples(start(3), rate, n, 3), fours(start(4), rate, n, 3);
  }
}

TEST_CASE("interleaved lanes: what lies in pairs is written as whole vectors", "[vectorise]") {
  const auto text = [](const auto& f) {
    return compile(f, {.target = Target::cpp, .opt = 3, .lanes = 8}).source("cpp");
  };
  CHECK(text(beside<2>).find("interleaved2_up_set0_set1") != std::string::npos);
  const std::string windows = text(grad<0>(largest<3, 2>));
  CHECK(windows.find("lt_interleaved2_up") != std::string::npos);
  CHECK(windows.find("*--tape") == std::string::npos);  // the largest so far is a value
  CHECK(text(grad<0>(largest<9, 2>)).find("*--tape") != std::string::npos);  // of more iterations than are written out
}
