// What minima and maxima in loops leave for the gradient: adjoints that are zero for the most part, loops that meet an
// element which all their iterations access, outcomes of comparisons on tapes, and truth values that lanes load.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <vector>

#include "../lanes.hpp"
#include "../occurrences.hpp"
#include "around_pass.hpp"
#include "lantern/compiler/passes/array/coincidence_splitting.hpp"
#include "lantern/compiler/passes/canonical/simplify.hpp"
#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using W = Rep<Array<std::int64_t>>;
using lantern::test::count;

namespace {

/// Dynamic time warping: each cost is a distance and the smallest of three costs before.
D warping(A x, A y) {
  const I n = x.size();
  A d = fill(D(0.0), n * n);
  FOR(1, n, [&](I i) {
    FOR(1, n, [&](I j) {
      const D e = x[i] - y[j];
      d = d.set(i * n + j, e * e + min(min(d[i * n - n + j], d[i * n + j - 1]), d[i * n - n + j - 1]));
    });
  });
  return d[n * n - 1];
}

/// All shortest paths, in place.
D shortest(A lengths, I n) {
  A d = lengths;
  FOR(0, n, [&](I k) {
    FOR(0, n, [&](I i) {
      FOR(0, n, [&](I j) { d = d.set(i * n + j, min(d[i * n + j], d[i * n + k] + d[k * n + j])); });
    });
  });
  return sum(d * d);
}

/// The worth of the best items of a bag, of whole weights, in place from above.
D packing(W weights, A worths, I room) {
  A best = fill(D(0.0), room + 1);
  FOR(0, worths.size(), [&](I i) {
    const I w = weights[i];
    const D v = worths[i];
    FOR(0, room + 1 - w, [&](I k) {
      const I c = room - k;
      best = best.set(c, max(best[c], best[c - w] + v));
    });
  });
  return best[room];
}

std::vector<double> numbers(std::size_t n, double low, double high) {
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> distribution(low, high);
  std::vector<double> all(n);
  for (double& x : all) x = distribution(generator);
  return all;
}

void same(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-12));
}

CompileOptions with(int opt, std::vector<std::string> without = {}) {
  CompileOptions options{.target = Target::cpp, .opt = opt, .lanes = test::lanes_under_test()};
  options.disabled_passes = std::move(without);
  return options;
}

}  // namespace

TEST_CASE("sparse_adjoints: the gradient of a table of minima skips what is not on the path", "[passes][choices]") {
  const auto [before, after] = test::around_pass("sparse_adjoints", grad<0, 1>(warping));
  CHECK(count(before, "branch") == 0);
  CHECK(count(after, "branch") == 1);
  const std::vector<double> x = numbers(9, 0, 1), y = numbers(9, 0.2, 2);
  const auto [dx, dy] = eager(grad<0, 1>(warping))(x, y);
  for (const auto& options : {with(0), with(1), with(3), with(3, {"sparse_adjoints"})}) {
    const auto [got_x, got_y] = compile(grad<0, 1>(warping), options)(x, y);
    same(got_x, dx), same(got_y, dy);
  }
}

TEST_CASE("sparse_adjoints: a factor that is no number is seen, though its adjoint is zero", "[passes][choices]") {
  // An infinite factor of an adjoint that is 0 gives NaN with the pass and without it.
  std::vector<double> x = numbers(6, 0, 1);
  const std::vector<double> y = numbers(6, 0.2, 2);
  x[2] = std::numeric_limits<double>::infinity();
  const auto [with_x, with_y] = compile(grad<0, 1>(warping), with(3))(x, y);
  const auto [without_x, without_y] = compile(grad<0, 1>(warping), with(3, {"sparse_adjoints"}))(x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(std::isnan(with_x[i]) == std::isnan(without_x[i]));
    CHECK(std::isnan(with_y[i]) == std::isnan(without_y[i]));
  }
}

TEST_CASE("sparse_adjoints: what a skipped sum begins with is still computed", "[passes][choices]") {
  const auto f = [](A a, I n) {
    A y = fill(D(1.5), n + 1), w = a;
    D s = 1.0;
    FOR(1, n, [&](I i) {
      const D o = s;
      s = w[i + 1];
      w = w.set(i, o * 0.8);
      y = y.set(i, min(min(y[i - 1] + a[i], a[i + n] + 0.4), o * a[2 * i]));
    });
    return s + y[n - 1] + sum(w);
  };
  const std::vector<double> a = numbers(20, 0.4, 1.2);
  for (const int opt : {1, 3}) same(compile(grad<0>(f), {.target = Target::c, .opt = opt})(a, 5), eager(grad<0>(f))(a, 5));
}

TEST_CASE("sparse_adjoints: blocks of lanes whose adjoints are zero are skipped", "[passes][choices]") {
  const auto gradient = grad<1>(packing);
  const auto [before, after] = test::around_pass("sparse_adjoints", gradient);
  CHECK(count(before, "lane_any") == 0);
  CHECK(count(after, "lane_any") >= 1);
  // All adjoints of the other program are some number: there a branch costs more than it saves.
  CHECK(count(test::around_pass("sparse_adjoints", grad<0>(shortest)).second, "lane_any") == 0);
  const auto compiled = compile(gradient, with(3));
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::int64_t> weights{7, 3, 0, 21, 5, 1};
  for (const std::vector<double>& worths :
       {std::vector{2.0, 1.1, 0.3, 6.5, 1.7, 0.2}, std::vector{1.0, 1.0, 0.0, 1.0, -1.0, 1.0}, std::vector{1.0, infinity, 2.0, -1.0, 3.0, 1.0}})
    for (const std::int64_t room : {21, 22, 37, 64, 101}) same(compiled(weights, worths, room), eager(gradient)(weights, worths, room));
  same(compiled({0}, {3.0}, 0), {1.0});
  same(compiled({}, {}, 5), {});
}

TEST_CASE("vectorise: a minimum takes what the comparison for the tape chooses", "[passes][choices]") {
  const std::string after = test::around_pass("vectorise", grad<0>(shortest)).second;
  std::istringstream lines(after);
  std::size_t minima = 0;
  for (std::string line; std::getline(lines, line);) minima += count(line, " = min ") * count(line, ": f64x");
  CHECK(minima == 0);
  CHECK(count(after, ": boolx8") > 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto in_lanes = compile(grad<0>(shortest), with(3)), scalar = compile(grad<0>(shortest), with(1));
  std::vector<double> lengths = numbers(19 * 19, 0.1, 2);
  for (const double odd : {nan, -0.0, std::numeric_limits<double>::infinity()}) {
    lengths[5] = lengths[100] = odd;
    const std::vector<double> got = in_lanes(lengths, 19), expected = eager(grad<0>(shortest))(lengths, 19), one = scalar(lengths, 19);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(std::isfinite(got[i]) == std::isfinite(expected[i]));
      CHECK(std::isfinite(got[i]) == std::isfinite(one[i]));
      if (std::isfinite(expected[i])) CHECK(got[i] == Approx(expected[i]).margin(1e-12));
    }
  }
}

TEST_CASE("index_set_splitting: at the element that all iterations access", "[passes][choices]") {
  const auto module = ir::parse(R"(entry @f

fun @f(%x: f64[?], %n: i64, %m: i64) -> f64[?] {
  %zero = constant 0 : i64
  %one = constant 1 : i64
  %k, %a = loop %zero, %x : i64, f64[?] while (%ck: i64, %ca: f64[?]) {
    %less = lt %ck, %n : bool
    yield %less
  } do (%i: i64, %t: f64[?]) {
    %j, %b = loop %zero, %t : i64, f64[?] while (%cj: i64, %cb: f64[?]) {
      %fewer = lt %cj, %n : bool
      yield %fewer
    } do (%l: i64, %u: f64[?]) {
      %fixed = get %u, %i : f64
      %own = get %u, %l : f64
      %both = add %own, %fixed : f64
      %v = set %u, %l, %both : f64[?]
      %next = add %l, %one : i64
      yield %next, %v
    }
    %then = add %i, %one : i64
    yield %then, %b
  }
  yield %a
}
)");
  ir::verify(*module);
  REQUIRE(passes::split_at_coincidences(*module));
  ir::verify(*module);
  passes::simplify(*module);
  const std::string text = ir::print(*module);
  CHECK(count(text, "loop") == 3);  // around, before and after
  CHECK(count(text, "set ") == 3);
  CHECK_FALSE(passes::split_at_coincidences(*module));
}

TEST_CASE("index_set_splitting: shortest paths in place, forward and backward, run in lanes", "[passes][choices]") {
  const auto compiled = compile(grad<0>(shortest), with(3));
  const auto [before, after] = test::around_pass("index_set_splitting", grad<0>(shortest));
  CHECK(test::loops_in(before) == 6);
  CHECK(test::loops_in(after) == 8);
  const auto [scalar, lanes] = test::around_pass("vectorise", grad<0>(shortest));
  CHECK(count(lanes, "boolx") > 0);
  for (const std::int64_t n : {1, 2, 3, 17, 40}) {
    std::vector<double> lengths = numbers(static_cast<std::size_t>(n * n), 1, 100);
    if (n > 2) lengths[4] = lengths[3] = 7;  // equal numbers share
    const std::vector<double> expected = eager(grad<0>(shortest))(lengths, n);
    same(compiled(lengths, n), expected);
    for (const auto& options : {with(0), with(1), with(3, {"vectorise"}), with(3, {"index_set_splitting"})})
      same(compile(grad<0>(shortest), options)(lengths, n), expected);
  }
}

TEST_CASE("index_set_splitting: loops that count from other numbers, and what surrounds them", "[passes][choices]") {
  // Paths by some nodes alone, twice, with a factor between the rounds.
  const auto some = [](A lengths, I n) {
    A d = lengths;
    FOR(0, 2, [&](I) {
      FOR(2, n, [&](I k) {
        FOR(1, n - 1, [&](I i) {
          FOR(1, n, [&](I j) { d = d.set(i * n + j, max(d[i * n + j], 0.9 * d[i * n + k] * d[k * n + j])); });
        });
      });
      d = 1.1 * d;
    });
    return sum(d * d);
  };
  const auto [before, after] = test::around_pass("index_set_splitting", grad<0>(some));
  CHECK(test::loops_in(after) == test::loops_in(before) + 2);
  for (const std::int64_t n : {3, 4, 9, 21}) {
    const std::vector<double> lengths = numbers(static_cast<std::size_t>(n * n), 0.5, 1.4);
    const std::vector<double> expected = eager(grad<0>(some))(lengths, n);
    for (const auto& options : {with(0), with(1), with(3), with(3, {"index_set_splitting"})})
      same(compile(grad<0>(some), options)(lengths, n), expected);
  }
}

TEST_CASE("index_set_splitting: a loop with a tape, at the iteration that a comparison asks for", "[passes][choices]") {
  /// Gauss-Seidel: all unknowns but the one that is solved for.
  const auto sweeps = [](A a, A b, I n) {
    A x = fill(D(0.0), n);
    FOR(0, 3, [&](I) {
      FOR(0, n, [&](I i) {
        const D s = FOR(0, n, b[i], [&](I j, D r) {
          IF(j != i, [&] { r -= a[i * n + j] * x[j]; });
          return r;
        });
        x = x.set(i, s / a[i * n + i]);
      });
    });
    return sum(x * x);
  };
  const auto gradient = grad<0, 1>(sweeps);
  const auto [before, after] = test::around_pass("index_set_splitting", gradient);
  CHECK(test::loops_in(after) == test::loops_in(before) + 2);  // one forward, and one backward
  // A mark of an adjoint is asked for by one copysign and one ne.
  const auto in_loops = [](const std::string& text) { return count(text, "ne %") - count(text, "copysign "); };
  CHECK(in_loops(before) == in_loops(after) + 2);
  for (const std::int64_t n : {1, 2, 5, 20}) {
    std::vector<double> a = numbers(static_cast<std::size_t>(n * n), 0, 1);
    for (std::int64_t i = 0; i < n; ++i) a[static_cast<std::size_t>(i * n + i)] += static_cast<double>(n);
    const std::vector<double> b = numbers(static_cast<std::size_t>(n), -1, 1);
    const auto [da, db] = eager(gradient)(a, b, n);
    for (const auto& options : {with(0), with(1), with(3)}) {
      const auto [got_a, got_b] = compile(gradient, options)(a, b, n);
      same(got_a, da), same(got_b, db);
    }
  }
}

TEST_CASE("tapes: a comparison in lanes is a bit on the tape", "[tape][choices]") {
  const auto compiled = compile(grad<0>(shortest), with(3));
  const std::string text = compiled.source("cpp");
  CHECK(count(text, "lt_pack_boolx") > 0);
  CHECK(count(text, "lt_unpack_boolx") > 0);
  CHECK(count(text, "lt_more_i64x") == 0);
}

TEST_CASE("truth values that are loaded in lanes are those before the iteration writes them", "[vectorise][choices]") {
  const auto turned = [](Rep<Tensor<bool, dyn>> was, A x) {
    const I n = x.size();
    return FOR(0, n, std::tuple(was, x), [&](I i, Rep<Tensor<bool, dyn>> b, A y) {
      const auto write = [&](const Rep<bool>& condition) {
        const Rep<Tensor<bool, dyn>> next = b.set(i, x[i] > 0.1);
        return std::tuple(next, A(y.set(i, select(condition, x[i], 2.0))));
      };
      return write(b(i) & (x[i] < 0.3));
    });
  };
  const auto fast = compile(turned, with(3)), slow = compile(turned, with(3, {"vectorise"}));
  CHECK(fast.source("ir").find("lane_index") != std::string::npos);
  for (const std::size_t n : std::initializer_list<std::size_t>{0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 63, 64, 65, 100, 129}) {
    CAPTURE(n);
    const auto memory = std::make_unique<bool[]>(n);
    for (std::size_t i = 0; i < n; ++i) memory[i] = i % 3 != 0;
    const TensorView<const bool> was(memory.get(), {static_cast<std::int64_t>(n)});
    std::vector<double> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = 0.1 + 0.37 * std::sin(1.7 * static_cast<double>(i));
    const auto [b, y] = fast(was, x);
    const auto [expected_b, expected_y] = slow(was, x);
    CHECK(b.data == expected_b.data);
    CHECK(y == expected_y);
  }
}
