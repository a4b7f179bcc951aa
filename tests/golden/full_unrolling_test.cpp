// full_unrolling: which inner loops are written out, and that nothing changes.
#include <catch2/catch.hpp>

#include "../correctness/row_programs.hpp"
#include "../lanes.hpp"
#include "../occurrences.hpp"
#include "around_pass.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

/// A filter of as many taps as are known, and its derivative by both.
template <std::int64_t taps>
D filtered(A x, A f) {
  return FOR(0, x.size() - (taps - 1), D(0.0), [&](I i, D all) {
    D s = 0.0;
    FOR(0, taps, [&](I k) { s += x[i + k] * f[k]; });
    return all + s * s;
  });
}
/// Two loops in one another, in two.
D plane(M x, M f) {
  M out = fill(D(0.0), x.dim(0) - 2, x.dim(1) - 2);
  FOR(0, out.dim(0), [&](I i) {
    FOR(0, out.dim(1), [&](I j) {
      D s = 0.0;
      FOR(0, 3, [&](I a) { FOR(0, 3, [&](I b) { s += x(i + a, j + b) * f(a, b); }); });
      out = out.set(i, j, s);
    });
  });
  return sum(out * out);
}
/// Each iteration needs the one before; reverse mode counts down.
D steps(A x) {
  return FOR(0, x.size(), D(0.0), [&](I i, D all) {
    const D y = FOR(0, 3, x[i], [&](I k, D v) { return sin(v) + 0.1 * v * cast<double>(k); });
    return all + y;
  });
}
/// The largest of a window of nine, where windows overlap and numbers may be equal.
D windows(M x) {
  const I rows = (x.dim(0) - 1) / 2, columns = (x.dim(1) - 1) / 2;
  return FOR(0, rows, D(0.0), [&](I i, D all) {
    return FOR(0, columns, all, [&](I j, D sum) {
      D m = x(2 * i, 2 * j);
      FOR(0, 3, [&](I p) { FOR(0, 3, [&](I q) { m = max(m, x(2 * i + p, 2 * j + q)); }); });
      return sum + m * m;
    });
  });
}
/// Numbers that a branch chooses, an integer beside them, and elements that are written on the way.
D chosen(A x) {
  A seen = fill(D(0.0), x.size() + 3);
  D all = 0.0;
  FOR(0, x.size() - 3, [&](I i) {
    D best = x[i], s = 0.0;
    I at = 0;
    FOR(1, 4, [&](I k) {
      IF(x[i + k] > best, [&] { best = x[i + k], at = k; });
      s = 0.5 * s + best * x[i];
      seen = seen.set(i + k, seen[i + k] + s);
    });
    all += best * cast<double>(at) + s * s;
  });
  return all + sum(seen * seen);
}
/// Steps of Newton's method, and a loop outside of loops.
D roots(A x) {
  D all = 0.0;
  FOR(0, x.size(), [&](I i) {
    D y = 1.0;
    FOR(0, 8, [&](I) { y = 0.5 * (y + (1.0 + x[i] * x[i]) / y); });
    all += y;
  });
  FOR(0, 3, [&](I k) { all = sin(all) * cast<double>(k + 1); });
  return all;
}
D of_known_size(A x) {
  return FOR(0, 3, D(0.0), [&](I i, D s) { return s + x[i] * x[i]; });
}
D of_unknown_size(A x, I n) {
  return total(x.size(), [&](I i) { return total(n, [&](I k) { return x[i] * cast<double>(k); }); });
}

/// Loops before the pass and after it.
template <class F>
std::pair<std::size_t, std::size_t> loops(F f) {
  const auto [before, after] = around_pass("full_unrolling", f);
  return {loops_in(before), loops_in(after)};
}

const std::vector<double>& flat(const std::vector<double>& x) { return x; }
const std::vector<double>& flat(const TensorValue<double>& x) { return x.data; }

/// The value and the gradient in all ways: those of the program without passes. Compiled once, for all
/// inputs.
template <class F>
class Same {
 public:
  explicit Same(F f) {
    const CompileOptions lanes{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()};
    CompileOptions threads = lanes, apart = lanes;
    threads.threads = 2;
    apart.disabled_passes = {"full_unrolling"};
    for (const CompileOptions& way : {CompileOptions{.target = Target::c, .opt = 0},
                                      CompileOptions{.target = Target::c}, lanes, threads, apart})
      ways_.emplace_back(compile(f, way), compile(grad(f), way));
  }
  template <class... In>
  void operator()(const In&... in) const {
    const double value = ways_[0].first(in...);
    const auto slopes = ways_[0].second(in...);
    for (std::size_t way = 1; way < ways_.size(); ++way) {
      CAPTURE(way);
      CHECK(agree::close(ways_[way].first(in...), value, 1e-12));
      const auto got = ways_[way].second(in...);
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        (check_close(flat(std::get<K>(got)), flat(std::get<K>(slopes))), ...);
      }
      (std::make_index_sequence<sizeof...(In)>{});
    }
  }

 private:
  std::vector<std::pair<decltype(compile(std::declval<F>())), decltype(compile(grad(std::declval<F>())))>>
      ways_;
};

}  // namespace

TEST_CASE("full_unrolling: inner loops of a few iterations", "[passes]") {
  CHECK(loops(filtered<1>).second == 1);
  CHECK(loops(filtered<4>) == std::pair<std::size_t, std::size_t>{2, 1});
  CHECK(loops(filtered<8>) == std::pair<std::size_t, std::size_t>{2, 1});
  CHECK(loops(filtered<9>).first == loops(filtered<9>).second);
  CHECK(loops(plane) == std::pair<std::size_t, std::size_t>{5, 3});
  // Before the derivative, where iterations carry numbers that are no sums.
  CHECK(loops(steps) == std::pair<std::size_t, std::size_t>{1, 1});
  CHECK(loops(windows) == std::pair<std::size_t, std::size_t>{2, 2});
  CHECK(loops(grad<0, 1>(filtered<3>)).second == 1);
  CHECK(loops(grad<0, 1>(filtered<7>)).second == 1);
  // Not in a loop; of so many iterations as nobody knows.
  CHECK(loops(of_known_size).second == 1);
  CHECK(loops(of_unknown_size).second == 2);
}

TEST_CASE("full_unrolling: the same numbers", "[passes]") {
  const Same one(filtered<1>);
  const Same three(filtered<3>);
  const Same four(filtered<4>);
  const Same five(filtered<5>);
  const Same eight(filtered<8>);
  const Same in_plane(plane);
  for (const std::size_t n : {5u, 8u, 17u, 40u}) {
    CAPTURE(n);
    const std::vector<double> x = numbers(n, 0.3), f = numbers(9, 0.8);
    one(x, f);
    three(x, f);
    four(x, f);
    five(x, f);
    if (n >= 7) eight(x, f);
    const std::vector<double> image = numbers(n * 7, 0.1);
    in_plane(matrix(image, n, 7), matrix(f, 3, 3));
  }
  const std::vector<double> x = numbers(33, 0.5);
  const auto expected = eager(grad(steps))(x);
  for (const Target target : {Target::c, Target::cpp})
    check_close(compile(grad(steps), {.target = target, .opt = 3})(x), expected);
}

TEST_CASE("full_unrolling: iterations that carry numbers", "[passes]") {
  const auto agrees = [](auto f, const auto&... inputs) {
    const auto value = eager(f);
    const auto slope = eager(grad<0>(f));
    for (const CompileOptions& way :
         {CompileOptions{.target = Target::c, .opt = 0}, CompileOptions{.target = Target::c},
          CompileOptions{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()}}) {
      const auto compiled = compile(f, way);
      const auto gradient = compile(grad<0>(f), way);
      const auto compare = [&](const auto& x) {
        CHECK(agree::close(compiled(x), value(x), 1e-12));
        check_close(flat(gradient(x)), flat(slope(x)));
      };
      (compare(inputs), ...);
    }
  };
  std::vector<double> steps_of_it(99), x = numbers(40, 0.3);
  for (std::size_t i = 0; i < steps_of_it.size(); ++i)
    steps_of_it[i] = static_cast<double>(i * 7 % 5);  // equal ones
  agrees(windows, matrix(x, 0, 5), matrix(x, 1, 1), matrix(x, 3, 3), matrix(x, 5, 8),
         matrix(steps_of_it, 9, 11));
  agrees(chosen, numbers(0, 0.1), numbers(4, 0.1), numbers(33, 0.7), steps_of_it);
  agrees(roots, numbers(0, 0.1), numbers(1, 0.1), numbers(21, 0.7));
}

TEST_CASE("full_unrolling: an index that is out of range is told as before", "[passes]") {
  const std::vector<double> x = numbers(9, 0.3), short_one = numbers(2, 0.3);
  std::string expected;
  try {
    compile(filtered<3>, {.target = Target::c, .opt = 0})(x, short_one);
  } catch (const Error& e) {
    expected = e.what();
  }
  REQUIRE_FALSE(expected.empty());
  for (const Target target : {Target::c, Target::cpp})
    CHECK_THROWS_WITH(compile(filtered<3>, {.target = target, .opt = 3})(x, short_one), expected);
}
