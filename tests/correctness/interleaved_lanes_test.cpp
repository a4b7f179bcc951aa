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
