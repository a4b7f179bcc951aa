// predictive_commoning: which elements iterations hand on as numbers, and that values and gradients stay the
// same.
#include <catch2/catch.hpp>
#include <limits>

#include "../correctness/row_programs.hpp"
#include "../lanes.hpp"
#include "../occurrences.hpp"
#include "around_pass.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

/// Of order one.
D decay(A a, I n) {
  A y = fill(D(0.5), n);
  FOR(1, n, [&](I i) { y = y.set(i, a[i] + a[0] * y[i - 1]); });
  return sum(y * y);
}
/// Of order two: of the elements that are read the iteration before has written one, and read the other.
D second_order(A a, I n) {
  A y = a;
  FOR(2, n, [&](I i) { y = y.set(i, y[i] + sin(y[i - 1]) - 0.3 * y[i - 2] * a[1]); });
  return sum(y * y);
}
/// Upwards and downwards, as tridiagonal systems are solved.
D tridiagonal(A a, I n) {
  A c = a, u = a;
  FOR(1, n, [&](I i) {
    const D w = 2.0 + a[i] * c[i - 1];
    c = c.set(i, a[i] / w);
    u = u.set(i, (u[i] - u[i - 1]) / w);
  });
  FOR(0, n - 1, [&](I k) {
    const I i = n - 2 - k;
    u = u.set(i, u[i] + c[i] * u[i + 1]);
  });
  return sum(u * u);
}
/// Least sums through a table, row by row.
D table(A a, I n) {
  A d = fill(D(0.0), n * n);
  FOR(0, n, [&](I i) {
    d = d.set(i * n, a[i]);
    FOR(1, n, [&](I j) {
      const I k = i * n + j;
      d = d.set(k, abs(a[i] - a[j]) +
                       IF(
                           i > 0, [&] { return min(d[k - 1], d[k - n]); }, [&] { return d[k - 1]; }));
    });
  });
  return IF(
      n > 0, [&] { return d[n * n - 1]; }, [&] { return D(0.0); });
}
/// An iteration writes twice. The next one reads what the second write has left.
D twice(A a, I n) {
  A y = a;
  FOR(1, n, [&](I i) {
    y = y.set(i, y[i - 1] * 0.5 + a[i]);
    y = y.set(i, y[i] * y[i] - y[i - 1]);
  });
  return sum(y);
}
/// Sums over all that lies above and to the left. Backwards an iteration adds to two neighbours in the row
/// above.
D summed(A a, I n) {
  const I w = n + 1;
  A s = fill(D(0.0), w * w);
  FOR(0, n, [&](I i) {
    FOR(0, n, [&](I j) {
      s = s.set((i + 1) * w + j + 1, a[i] * sin(a[j]) + s[i * w + j + 1] + s[(i + 1) * w + j] - s[i * w + j]);
    });
  });
  return sum(s * s);
}
/// An input and the one before, in each iteration of a recurrence.
D filter(A a, I n) {
  A y = a;
  FOR(1, n, [&](I i) { y = y.set(i, cos(y[i - 1]) + 0.3 * a[i] * a[i] - 0.2 * sin(a[i - 1])); });
  return sum(y * y);
}
/// Backwards another element is added to between, which may be the same one.
D chosen_between(A a, I n, I at) {
  A y = a;
  FOR(1, n, [&](I i) { y = y.set(i, cos(y[i - 1]) + a[i] * a[at] * a[i - 1]); });
  return sum(y * y);
}
/// What is written may be what is read: the element is one that the program chooses.
D elsewhere(A a, I n, I at) {
  A y = a;
  FOR(1, n, [&](I i) {
    y = y.set(i, y[i - 1] * 0.5 + a[i]);
    y = y.set(at, y[at] + 1.0);
  });
  return sum(y * y);
}
/// Another distance than the step of the loop, and the iteration before last.
D further(A a, I n) {
  A y = a;
  FOR(3, n, [&](I i) { y = y.set(i, y[i - 3] * 0.5 + y[i - 2] * a[i]); });
  return sum(y * y);
}
/// The last element is beyond the end, as is the first one in an iteration.
D beyond(A a, I first, I last) {
  A y = a;
  FOR(first, last, [&](I i) { y = y.set(i, y[i - 1] + a[i]); });
  return sum(y);
}

const std::vector<std::string> off{"predictive_commoning"};

/// The same as at once, for arrays of several sizes.
template <class F, class... More>
void check(const F& f, const std::vector<std::vector<double>>& inputs, const More&... more) {
  for (const CompileOptions& way :
       {CompileOptions{.target = Target::c}, CompileOptions{.target = Target::c, .disabled_passes = off},
        CompileOptions{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()}}) {
    const auto value = compile(f, way);
    const auto slope = compile(grad<0>(f), way);
    for (const std::vector<double>& x : inputs) {
      const auto n = static_cast<std::int64_t>(x.size());
      CAPTURE(n);
      CHECK(agree::close(value(x, n, more...), eager(f)(x, n, more...), 1e-11));
      check_close(slope(x, n, more...), eager(grad<0>(f))(x, n, more...));
    }
  }
}
std::vector<std::vector<double>> sizes(std::size_t least) {
  std::vector<std::vector<double>> all;
  for (const std::size_t n : {0u, 1u, 2u, 3u, 4u, 5u, 8u, 33u})
    if (n >= least) all.push_back(numbers(n, 0.4));
  return all;
}
template <class F>
bool changes(F f) {
  const auto [before, after] = around_pass("predictive_commoning", f);
  return before != after;
}

}  // namespace

TEST_CASE("predictive_commoning: values and gradients", "[passes]") {
  check(decay, sizes(1));
  check(second_order, sizes(2));
  check(tridiagonal, sizes(0));
  check(table, sizes(0));
  check(twice, sizes(0));
  check(further, sizes(0));
  check(summed, sizes(0));
  check(filter, sizes(0));
  for (const std::int64_t at : {0, 1, 3}) check(chosen_between, sizes(4), at);
  check(elsewhere, sizes(5), std::int64_t{0});
  check(elsewhere, sizes(5), std::int64_t{4});
  CHECK(changes(decay));
  CHECK(changes(second_order));
  CHECK(changes(tridiagonal));
  CHECK(changes(table));
  CHECK_FALSE(changes(elsewhere));
  CHECK_FALSE(changes(further));
}

TEST_CASE("predictive_commoning: adjoints are handed on as numbers", "[passes]") {
  for (const auto& [before, after] : {around_pass("predictive_commoning", grad<0>(decay)),
                                      around_pass("predictive_commoning", grad<0>(tridiagonal))}) {
    CHECK(count(after, "= add_at") < count(before, "= add_at"));
    CHECK(count(after, "= set") + count(after, "= add_at") ==
          count(before, "= set") + count(before, "= add_at"));
  }
}

TEST_CASE("predictive_commoning: sums of adjoints are handed on as numbers", "[passes]") {
  for (const auto& [before, after] : {around_pass("predictive_commoning", grad<0>(summed)),
                                      around_pass("predictive_commoning", grad<0>(filter))})
    CHECK(count(after, "= add_at") + 2 <= count(before, "= add_at"));
}

TEST_CASE("predictive_commoning: equal sums, NaN and infinities", "[passes]") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::vector<double>> inputs;
  for (const double special : {inf, -inf, nan, -0.0, 1e-310})
    for (const std::size_t at : {0u, 3u, 6u}) {
      inputs.push_back(numbers(7, 0.4));
      inputs.back()[at] = special;
    }
  check(decay, inputs);
  check(tridiagonal, inputs);
  check(filter, inputs);
  inputs.emplace_back(5, 0.25);
  inputs.push_back({0.1, 0.2, 0.1, 0.2, 0.1});
  check(table, inputs);
}

TEST_CASE("predictive_commoning: an element outside is told where an iteration reads it", "[passes]") {
  const auto f = compile(beyond, {.target = Target::c});
  const auto gradient = compile(grad<0>(beyond), {.target = Target::c});
  const std::vector<double> x = numbers(5, 0.4);
  CHECK(agree::close(f(x, 1, 5), eager(beyond)(x, 1, 5), 1e-12));
  for (const auto& [first, last, index] :
       {std::tuple(0, 5, "-1"), std::tuple(-3, 0, "-4"), std::tuple(1, 6, "5")}) {
    CHECK_THROWS_WITH(f(x, first, last), Catch::Contains(std::string("index ") + index));
    CHECK_THROWS_WITH(gradient(x, first, last), Catch::Contains("is outside"));
  }
  // No iteration reads what is not there.
  CHECK(agree::close(f(x, 0, 0), eager(beyond)(x, 0, 0), 1e-12));
  CHECK(agree::close(f({}, 7, 3), 0.0, 1e-12));
  CHECK(gradient({}, 7, 3).empty());
}
