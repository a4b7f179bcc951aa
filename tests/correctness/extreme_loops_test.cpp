// Gradients of loops that find the largest or smallest number: equal numbers, NaN, no iterations, nests,
// second derivatives; and tapes of comparisons instead of numbers.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "../lanes.hpp"
#include "../occurrences.hpp"
#include "lantern/ir/parse.hpp"
#include "row_programs.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<CompileOptions> ways() {
  return {{.target = Target::c, .opt = 0},
          {.target = Target::c, .opt = 3},
          {.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()},
          {.target = Target::c, .opt = 3, .disabled_passes = {"tape_narrowing"}},
          {.target = Target::c, .opt = 3, .disabled_passes = {"register_promotion"}}};
}

/// A gradient compiled in all ways gives what the eager one gives, NaN included.
template <class F, class... In>
void check_gradient(const F& f, const std::vector<std::tuple<In...>>& points) {
  const auto gradient = grad<0>(f);
  const auto reference = eager(gradient);
  for (const CompileOptions& way : ways()) {
    const auto compiled = compile(gradient, way);
    for (const auto& point : points) {
      const std::vector<double> expected = std::apply(reference, point), got = std::apply(compiled, point);
      CAPTURE(static_cast<int>(way.target), way.opt, agree::list(std::get<0>(point)));
      check_close(got, expected);
    }
  }
}

/// Numbers of which many are equal, some of no value, and none.
std::vector<std::tuple<std::vector<double>>> samples() {
  std::vector<std::tuple<std::vector<double>>> all{{{}},
                                                   {{2.0}},
                                                   {{1.0, 3.0, 3.0, 2.0}},
                                                   {{3.0, 1.0, 3.0, 3.0, 0.5}},
                                                   {{nan, 1.0, 2.0}},
                                                   {{1.0, nan, 2.0, 2.0}},
                                                   {{2.0, 2.0, nan}},
                                                   {{0.0, -0.0, 0.0}},
                                                   {{HUGE_VAL, 1.0, HUGE_VAL}}};
  std::minstd_rand random(7);
  for (std::size_t n : {5u, 16u, 33u}) {
    std::vector<double> few, many;
    for (std::size_t i = 0; i < n; ++i) {
      few.push_back(static_cast<double>(random() % 4));
      many.push_back(std::sin(static_cast<double>(random() % 1000)));
    }
    all.push_back({few});
    all.push_back({many});
  }
  return all;
}

/// As the cost of the best order of a product of matrices, from short intervals to long ones.
D chain(A p, I n) {
  A m = fill(D(0.0), n * n);
  FOR(0, n - 1, [&](I s) {
    const I i = n - 2 - s;
    FOR(i + 1, n, [&](I j) {
      const D best = FOR(i, j, D(1e30), [&](I k, D least) {
        return min(least, m[i * n + k] + m[(k + 1) * n + j] + p[i] * p[k + 1] * p[j + 1]);
      });
      m = m.set(i * n + j, best);
    });
  });
  return m[n - 1];
}

/// All shortest paths.
D paths(A lengths, I n) {
  A d = lengths;
  FOR(0, n, [&](I k) {
    FOR(0, n, [&](I i) {
      FOR(0, n, [&](I j) { d = d.set(i * n + j, min(d[i * n + j], d[i * n + k] + d[k * n + j])); });
    });
  });
  return sum(d * d);
}

std::vector<std::tuple<std::vector<double>, std::int64_t>> with_size(std::size_t extra, bool square) {
  std::vector<std::tuple<std::vector<double>, std::int64_t>> all;
  std::minstd_rand random(3);
  for (const std::int64_t n : {1, 2, 3, 6, 9})
    for (const unsigned kinds : {3u, 1000u}) {
      std::vector<double> x(static_cast<std::size_t>(square ? n * n : n) + extra);
      for (double& v : x) v = 1.0 + static_cast<double>(random() % kinds) / 7;
      all.emplace_back(x, n);
    }
  return all;
}

std::size_t numbers_kept(const std::string& ir) {
  std::size_t n = 0;
  const auto module = ir::parse(ir);
  for (const ir::Function* f : module->functions())
    ir::walk(f->body, [&](const ir::Op* op) {
      if (op->is(ir::Opcode::push_))
        for (const ir::Value* v : op->operands) n += v->type == ir::F64 ? 1 : 0;
    });
  return n;
}

}  // namespace

TEST_CASE("extremes: a loop's gradient is that of its iterations, also where numbers are equal",
          "[extremes]") {
  check_gradient([](A x) { return FOR(0, x.size(), D(1.5), [&](I i, D m) { return max(m, x[i]); }); },
                 samples());
  check_gradient([](A x) { return FOR(0, x.size(), D(2.0), [&](I i, D m) { return max(x[i] * x[i], m); }); },
                 samples());
  check_gradient([](A x) { return FOR(0, x.size(), D(2.0), [&](I i, D m) { return min(m, 3.0 - x[i]); }); },
                 samples());
  check_gradient(
      [](A x) { return FOR(0, x.size(), D(0.0), [&](I i, D m) { return min(exp(x[i]) - 20.0, m); }); },
      samples());
  // The start has a derivative as well; the value is used twice.
  check_gradient(
      [](A x) {
        const D m = FOR(1, x.size(), sum(x), [&](I i, D best) { return max(best, x[i - 1] * x[i]); });
        return m * m + sum(x);
      },
      samples());
}

TEST_CASE("extremes: nests of loops, and the second derivative", "[extremes]") {
  check_gradient(chain, with_size(1, false));
  check_gradient(paths, with_size(0, true));
  const auto slope = [](A p, I n) {
    const A g = grad<0>(chain)(p, n);
    return sum(g * g);
  };
  check_gradient(slope, with_size(1, false));
}

TEST_CASE("extremes: forward mode and reverse mode agree", "[extremes]") {
  const auto f = [](A x) { return FOR(0, x.size(), D(-9.0), [&](I i, D m) { return max(m, x[i] * x[i]); }); };
  const auto gradient = compile(grad(f));
  const auto forward = compile([f](A x, A dx) { return std::get<1>(jvp(f)(x, dx)); });
  for (const auto& [x] : samples()) {
    const std::vector<double> g = gradient(x);
    std::vector<double> direction = numbers(x.size(), 0.3);
    double expected = 0;
    for (std::size_t i = 0; i < x.size(); ++i) expected += g[i] * direction[i];
    CHECK(agree::close(forward(x, direction), expected, 1e-12));
  }
}

TEST_CASE("tapes hold comparisons where numbers are only compared", "[tape]") {
  const auto text = [](CompileOptions options) {
    options.target = Target::c;
    options.opt = 3;
    return compile(grad<0>(paths), options).source("ir");
  };
  CHECK(numbers_kept(text({})) == 0);
  CHECK(count(text({}), "push") > 0);
  CHECK(numbers_kept(text({.disabled_passes = {"tape_narrowing", "index_set_splitting"}})) == 2);
  // A number that is used for more than that is kept.
  const auto steep = [](A x) {
    D y = 1.0;
    FOR(0, x.size(), [&](I i) { y = max(y * y * 0.5, x[i]); });
    return y;
  };
  check_gradient(steep, samples());
  CHECK(numbers_kept(compile(grad(steep), {.target = Target::c, .opt = 3}).source("ir")) > 0);
}

TEST_CASE("sums of adjoints: an element that need not exist is added to where the loop has an iteration",
          "[passes]") {
  const auto weighted = [](A x, A w, I n, I at) {
    return FOR(0, n, D(0.0), [&](I i, D s) { return sin(s) + x[i] * w[at] * w[i]; });
  };
  const auto reference = eager(grad<1>(weighted));
  for (const CompileOptions& way : ways()) {
    const auto gradient = compile(grad<1>(weighted), way);
    const std::vector<double> x = numbers(6, 0.2), w = numbers(8, 0.9);
    for (const std::int64_t n : {0, 1, 6}) check_close(gradient(x, w, n, 7), reference(x, w, n, 7));
    check_close(gradient(x, w, 0, 99), std::vector<double>(8, 0.0));  // no iteration asks for it
    CHECK_THROWS_AS(gradient(x, w, 1, 99), Error);
  }
}
