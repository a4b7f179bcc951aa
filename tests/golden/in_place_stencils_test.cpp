// Loops that read the tensor they started from: which of these reads become reads of the loop's state, and
// that no result changes.
#include <catch2/catch.hpp>

#include "../correctness/agree.hpp"
#include "../occurrences.hpp"
#include "lantern/ir/print.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

/// The program: `steps` times a whole sweep of `sweep(a)` over an array.
template <class F>
auto repeated(F sweep) {
  return [sweep](A a, I steps) {
    const A last = FOR(0, steps, a, [&](I, A s) { return sweep(s); });
    return FOR(0, last.size(), 0.0, [&](I i, D sum) { return sum + last[i] * last[i]; });
  };
}

using lantern::test::count;

/// Runs eagerly, staged with and without passes, and differentiates.
template <class F>
std::string check_sweep(F sweep) {
  const auto f = repeated(sweep);
  const std::vector<double> a{0.5, -0.25, 1.5, 0.75, -1.0, 0.3, 0.2};
  const auto expected = eager(value_and_grad<0>(f))(a, 3);
  for (const int opt : {0, 1, 3}) {
    const auto got =
        compile(value_and_grad<0>(f), {.target = opt == 1 ? Target::c : Target::cpp, .opt = opt})(a, 3);
    INFO(opt);
    CHECK(std::get<0>(got) == Approx(std::get<0>(expected)).epsilon(1e-12));
    for (std::size_t i = 0; i < a.size(); ++i)
      CHECK(std::get<1>(got)[i] == Approx(std::get<1>(expected)[i]).epsilon(1e-12).margin(1e-12));
  }
  return compile(f, {.target = Target::c, .name = "sweep"}).source("c");
}

}  // namespace

TEST_CASE("in_place_stencils: reads of the element that an iteration sets happen in place", "[staging]") {
  const std::string in_place = check_sweep([](A s) {
    return FOR(0, s.size(), s, [s](I i, A next) { return next.set(i, sin(s[i]) + s[i] * s[i]); });
  });
  // One copy, of what the caller gave; none a step.
  CHECK(count(in_place, "lt_copy_f64_1d(ws") == 1);
}

TEST_CASE("in_place_stencils: reads of other elements keep the tensor", "[staging]") {
  const auto neighbour = [](A s) {
    return FOR(1, s.size(), s, [s](I i, A next) { return next.set(i, sin(s[i - 1]) + s[i]); });
  };
  const std::string kept = check_sweep(neighbour);
  CHECK(count(kept, "lt_copy_outside(") == 2);  // its definition, and a copy of element 0
  // Element i is set before iteration i + 1 asks what it was: the answer is of the step before.
  const auto two = compile([neighbour](A a) { return neighbour(neighbour(a)); }, {.target = Target::c});
  const std::vector<double> y = two(std::vector<double>{1.0, 2.0, 3.0});
  const double b1 = std::sin(1.0) + 2.0, b2 = std::sin(2.0) + 3.0;
  CHECK(y[1] == Approx(std::sin(1.0) + b1));
  CHECK(y[2] == Approx(std::sin(b1) + b2));
}

TEST_CASE("in_place_stencils: a read after the update, and an update elsewhere", "[staging]") {
  check_sweep([](A s) {
    return FOR(0, s.size(), s, [s](I i, A next) {
      const A changed = next.set(i, 2.0 * s[i]);
      return changed.set(i, changed[i] * s[i]);
    });
  });
  check_sweep([](A s) {
    return FOR(0, s.size(), s, [s](I i, A next) { return next.set(0, s[i] * 0.5 + next[0]); });
  });
  check_sweep([](A s) { return FOR(0, s.size(), s, [s](I i, A next) { return next.set(i, s[i] * s[0]); }); });
  check_sweep([](A s) {
    return FOR(0, s.size(), s, [s](I i, A next) {
      return IF(
          s[i] > 0.0, [&] { return next.set(i, s[i] * 0.5); }, [&] { return next; });
    });
  });
  check_sweep([](A s) {
    return FOR(0, s.size() - 1, s,
               [s](I i, A next) { return next.set(i, s[i] + 1.0).set(i + 1, s[i] * 0.5); });
  });
}

TEST_CASE("in_place_stencils: rows of a matrix", "[staging]") {
  using M = Rep<Tensor<double, dyn, dyn>>;
  const auto f = [](M m, I steps) {
    const M last = FOR(0, steps, m, [](I k, M s) {
      return FOR(0, s.dim(1), s, [s, k](I i, M next) {
        const I row = k % 2;
        return next.set(row, i, sin(s(row, i)) * s(1 - row, i)).set(1 - row, i, s(row, i) + 0.5);
      });
    });
    return FOR(0, m.dim(1), 0.0, [&](I i, D sum) { return sum + last(0, i) * last(1, i); });
  };
  const auto reference = eager(value_and_grad<0>(f));
  std::vector<double> numbers{0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  const TensorView<double> m(numbers.data(), {2, 3});
  const auto [value, gradient] = reference(m, 4);
  for (const int opt : {0, 3}) {
    const auto [v, g] = compile(value_and_grad<0>(f), {.target = Target::cpp, .opt = opt})(m, 4);
    CHECK(v == Approx(value));
    for (std::size_t i = 0; i < 6; ++i) CHECK(g.data[i] == Approx(gradient.data[i]));
  }
}
