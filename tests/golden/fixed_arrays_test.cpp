// fixed_arrays, if_conversion and recurrences: which arrays become numbers, which sums leave their branches,
// and that gradients stay the same.
#include <catch2/catch.hpp>

#include "../correctness/row_programs.hpp"
#include "../lanes.hpp"
#include "../occurrences.hpp"
#include "around_pass.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

/// Products of 3 x 3 matrices, one after another.
D rotations(A a, I n) {
  A r = fill(D(0.0), 9), next = r;
  FOR(0, 3, [&](I i) { r = r.set(i * 3 + i, D(1.0)); });
  D sum = 0.0;
  FOR(0, n, [&](I t) {
    FOR(0, 3, [&](I i) {
      FOR(0, 3, [&](I j) {
        const D s = FOR(0, 3, D(0.0), [&](I k, D p) { return p + r[i * 3 + k] * a[t * 9 + k * 3 + j]; });
        next = next.set(i * 3 + j, s);
      });
    });
    FOR(0, 9, [&](I i) { r = r.set(i, next[i]); });
    sum += r[0] * r[4] + sin(r[8]);
  });
  return sum;
}
/// An element that the program chooses keeps the array in memory.
D chosen(A a, I n, I at) {
  A r = fill(D(0.0), 4);
  FOR(0, n, [&](I t) { FOR(0, 4, [&](I i) { r = r.set(i, r[i] * r[at] + a[t]); }); });
  return r[at];
}
/// So does a size that it chooses, and a loop that need not run to the end of the array.
D sized(A a, I n, I size) {
  A r = fill(D(0.5), size);
  FOR(0, n, [&](I t) { FOR(0, size, [&](I i) { r = r.set(i, r[i] * a[t] + 1.0); }); });
  return sum(r * r);
}
/// An array that is used whole.
D whole(A a, I n) {
  A r = fill(D(0.5), 3);
  FOR(0, n, [&](I t) { FOR(0, 3, [&](I i) { r = r.set(i, r[i] * a[t] + 1.0); }); });
  return sum(r * r);
}
/// Outside the array, if it is reached.
D beyond(A a, I n) {
  A r = fill(D(0.5), 3);
  FOR(0, n, [&](I t) { FOR(0, 4, [&](I i) { r = r.set(i, a[t]); }); });
  return r[0];
}

/// Four equations by elimination: loops over triangles.
D elimination(A a, I n) {
  D sum = 0.0;
  FOR(0, n, [&](I t) {
    A w = fill(D(0.0), 20);
    FOR(0, 4, [&](I i) {
      FOR(0, 5, [&](I j) { w = w.set(i * 5 + j, a[t * 20 + i * 5 + j]); });
      w = w.set(i * 6, w[i * 6] + 3.0);
    });
    FOR(0, 4, [&](I k) {
      FOR(k + 1, 4, [&](I i) {
        const D factor = w[i * 5 + k] / w[k * 6];
        FOR(k, 5, [&](I j) { w = w.set(i * 5 + j, w[i * 5 + j] - factor * w[k * 5 + j]); });
      });
    });
    FOR(0, 4, [&](I k) {
      const I i = 3 - k;
      FOR(i + 1, 4, [&](I j) { w = w.set(i * 5 + 4, w[i * 5 + 4] - w[i * 5 + j] * w[j * 5 + 4]); });
      w = w.set(i * 5 + 4, w[i * 5 + 4] / w[i * 6]);
      sum += w[i * 5 + 4] * w[i * 5 + 4];
    });
  });
  return sum;
}
/// As many elements as become numbers, and one more.
template <int size>
D running(A a, I n) {
  A r = fill(D(0.25), size);
  FOR(0, n, [&](I t) { FOR(0, size, [&](I i) { r = r.set(i, r[i] * a[t] + r[0]); }); });
  return r[size - 1];
}
/// A triangle whose last row goes beyond the end.
D beyond_triangle(A a, I n) {
  A r = fill(D(0.5), 9);
  FOR(0, n, [&](I t) { FOR(0, 3, [&](I i) { FOR(i, 4, [&](I k) { r = r.set(i * 3 + k, a[t]); }); }); });
  return r[0];
}

/// Flow from the left or the right.
D flow(A start, I steps) {
  const I n = start.size();
  const A last = FOR(0, steps, start, [&](I, A u) {
    A next = u;
    FOR(1, n - 1, [&](I i) {
      const D slope = IF(
          u[i] > 0.0, [&] { return u[i] - u[i - 1]; }, [&] { return u[i + 1] - u[i]; });
      next = next.set(i, u[i] - 0.1 * u[i] * slope + 0.05 * (u[i + 1] - 2.0 * u[i] + u[i - 1]));
    });
    return next;
  });
  return sum(last * last);
}

template <class F, class... In>
void check_gradient(const F& f, const In&... in) {
  const std::vector<double> expected = eager(grad<0>(f))(in...);
  for (const CompileOptions& way :
       {CompileOptions{.target = Target::c, .opt = 0}, CompileOptions{.target = Target::c},
        CompileOptions{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()},
        CompileOptions{.target = Target::c, .disabled_passes = {"fixed_arrays", "if_conversion"}}})
    check_close(compile(grad<0>(f), way)(in...), expected);
}

template <class F>
std::size_t fills_left(F f) {
  return count(around_pass("simplify", f, 0).second, "= fill");
}

}  // namespace

TEST_CASE("fixed_arrays: small arrays whose elements are known become numbers", "[passes]") {
  CHECK(fills_left(rotations) == 0);
  CHECK(fills_left(chosen) == 1);
  CHECK(fills_left(sized) == 1);
  CHECK(fills_left(whole) == 1);
  CHECK(fills_left(elimination) == 0);
  CHECK(fills_left(running<25>) == 0);
  CHECK(fills_left(running<26>) == 1);
  CHECK(count(around_pass("simplify", grad<0>(rotations), 0).second, "= fill") <= 1);  // the gradient itself
}

TEST_CASE("fixed_arrays: gradients", "[passes]") {
  for (const std::int64_t n : {0, 1, 2, 5}) {
    check_gradient(rotations, numbers(9 * 5, 0.4), n);
    check_gradient(chosen, numbers(5, 0.4), n, std::int64_t{2});
    check_gradient(sized, numbers(5, 0.4), n, std::int64_t{3});
    check_gradient(whole, numbers(5, 0.4), n);
    check_gradient(elimination, numbers(20 * 5, 0.4), n);
    check_gradient(running<25>, numbers(5, 0.4), n);
  }
}

TEST_CASE("fixed_arrays: an index outside is an error where it is reached", "[passes]") {
  for (const Target target : {Target::c, Target::cpp}) {
    const auto f = compile(beyond, {.target = target});
    CHECK(f(numbers(3, 0.1), 0) == 0.5);
    CHECK_THROWS_WITH(f(numbers(3, 0.1), 1), Catch::Contains("index 3"));
    const auto triangle = compile(beyond_triangle, {.target = target});
    CHECK(triangle(numbers(3, 0.1), 0) == 0.5);
    CHECK_THROWS_WITH(triangle(numbers(3, 0.1), 1), Catch::Contains("index 9"));
    const auto gradient = compile(grad<0>(beyond), {.target = target});
    CHECK_THROWS_WITH(gradient(numbers(3, 0.1), 1), Catch::Contains("index 3"));
  }
}

TEST_CASE("if_conversion: sums of adjoints leave their branches", "[passes]") {
  const auto [before, after] = around_pass("if_conversion", grad<0>(flow), 0);
  const std::string loop = after.substr(after.find("pop["));
  CHECK(count(before, "add_at") == count(after, "add_at"));
  CHECK(count(after, "select") > count(before, "select"));
  for (const std::size_t n : {3u, 4u, 40u, 77u}) check_gradient(flow, numbers(n, 0.7), std::int64_t{3});
}
