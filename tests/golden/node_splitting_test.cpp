// node_splitting: which loops read what was there before them, that these work in one memory again where
// nobody asks for both, and that no number changes.
#include <catch2/catch.hpp>
#include <random>
#include <regex>
#include <thread>

#include "../correctness/depth.hpp"
#include "../correctness/row_programs.hpp"
#include "../lanes.hpp"
#include "../occurrences.hpp"
#include "around_pass.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

/// Steps of a tree of prices: each leaves one fewer.
D tree(A v, D p) {
  const I n = v.size() - 1;
  FOR(0, n,
      [&](I s) { FOR(0, n - s, [&](I i) { v = v.set(i, 0.99 * (p * v[i + 1] + (1.0 - p) * v[i])); }); });
  return v[0];
}
/// With the wind, from the end to the start.
D upwind(A u, D c) {
  const I n = u.size();
  FOR(0, 3, [&](I) {
    FOR(0, n - 1, [&](I k) {
      const I i = n - 1 - k;
      u = u.set(i, u[i] - c * u[i] * (u[i] - u[i - 1]));
    });
  });
  return sum(u * u);
}
/// The same the other way round: each iteration reads what the iteration before has left.
D swept(A u, D c) {
  FOR(1, u.size(), [&](I i) { u = u.set(i, u[i] - c * u[i - 1]); });
  return sum(u * u);
}
/// A part of an array, perhaps a small one.
D window(A u, I from, I to) {
  FOR(from, to, [&](I i) { u = u.set(i, 0.5 * u[i + 1] + u[i] * u[i + 2]); });
  return sum(u * u);
}
/// Rows of a flat array, and a product with a triangle.
D rows(A x, I n) {
  A u = fill(D(0.0), n * n);
  FOR(0, n * n, [&](I i) { u = u.set(i, x[i] * x[i]); });
  FOR(0, n - 1, [&](I i) {
    FOR(0, n - 1, [&](I j) {
      u = u.set(i * n + j, 0.5 * u[i * n + j] * u[(i + 1) * n + j] + 0.25 * u[i * n + j + 1]);
    });
  });
  return sum(u * u);
}
D triangle(M a, M b) {
  FOR(0, b.dim(0), [&](I i) {
    FOR(0, b.dim(1),
        [&](I j) { FOR(i + 1, b.dim(0), [&](I k) { b = b.set(i, j, b(i, j) + a(k, i) * b(k, j)); }); });
  });
  return sum(b * b);
}
/// What flows between neighbours comes from the one on the windward side: both sides of a branch write one
/// element.
D flux(A u, D c) {
  A f = fill(D(0.0), u.size());
  FOR(0, 3, [&](I) {
    FOR(0, u.size() - 1, [&](I i) {
      IF(
          u[i] + u[i + 1] > 0.0, [&] { f = f.set(i + 1, c * u[i] * u[i]); },
          [&] { f = f.set(i + 1, u[i + 1] / (c - u[i])); });
    });
    FOR(1, u.size() - 1, [&](I i) { u = u.set(i, u[i] - 0.2 * (f[i + 1] - f[i])); });
  });
  return sum(u * u);
}
/// An option that may be exercised early, whose weights divide by a number of the program.
D option(A s, D u) {
  const D p = 1.0 / (u - 1.0), q = 1.0 - p;
  A v = s;
  FOR(0, s.size() - 1, [&](I t) {
    FOR(0, s.size() - 1 - t, [&](I i) {
      s = s.set(i, s[i] * u);
      v = v.set(i, max(p * v[i] + q * v[i + 1], 1.0 - s[i]));
    });
  });
  return v[0];
}
/// A knapsack: the distance of the elements is a number of the program.
D knapsack(A u, D v, I far) {
  FOR(0, 2, [&](I) {
    const I low = max(far, 0), high = u.size() + min(far, 0);
    FOR(0, high - low, [&](I k) {
      const I c = high - 1 - k;
      u = u.set(c, max(u[c], u[c - far] * v));
    });
  });
  return sum(u * u);
}
/// Elements of one array change on their own, and those of another one by them.
D pair(A s, D p) {
  A v = s;
  FOR(0, 3, [&](I) {
    FOR(0, v.size() - 1, [&](I i) {
      s = s.set(i, s[i] * p);
      const D x = 0.6 * v[i] + 0.4 * v[i + 1];
      v = v.set(i, x * x - s[i]);
    });
  });
  return sum(v * v);
}
/// A stencil whose coefficient has a derivative as well: zeros, sums of neighbours, and a sum over all.
D diffusion(A u, D c) {
  FOR(0, 3, [&](I) {
    A next = u;
    FOR(1, u.size() - 1, [&](I i) { next = next.set(i, u[i] + c * (u[i - 1] - 2.0 * u[i] + u[i + 1])); });
    u = next;
  });
  return sum(u * u);
}
/// Of each example a tree of its own.
D trees(A start, D p, I n) {
  return total(start.size(), [&](I k) {
    A v = fill(D(0.0), n + 1);
    FOR(0, n + 1, [&](I i) { v = v.set(i, start[k] * exp(p * cast<double>(i))); });
    return tree(v, p);
  });
}

/// The loops that say that their iterations may run in any order.
template <class F>
std::size_t parallel_loops(F f) {
  return count(around_pass("parallel", f, 0).second, "= parallel");
}

const std::vector<double>& flat(const std::vector<double>& x) { return x; }
const std::vector<double>& flat(const TensorValue<double>& x) { return x.data; }
std::vector<double> flat(double x) { return {x}; }

/// The value and the gradient, in lanes and in a way that is another for each number of lanes: those of the
/// program without passes.
template <class F>
class Everywhere {
 public:
  explicit Everywhere(F f) {
    const CompileOptions lanes{.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()};
    const CompileOptions c{.target = Target::c};
    CompileOptions threads = lanes, apart = lanes;
    threads.threads = 2;
    apart.disabled_passes = {"in_place_stencils"};
    const CompileOptions& other = lanes_under_test() == 2 ? apart : lanes_under_test() == 8 ? threads : c;
    for (const CompileOptions& way : {CompileOptions{.target = Target::c, .opt = 0}, lanes, other})
      ways_.emplace_back(compile(f, way), compile(grad(f), way));
  }

  template <class... In>
  void operator()(const In&... in) const {
    const auto& [objective, gradient] = ways_.front();
    const double value = objective(in...);
    const auto slopes = gradient(in...);
    for (std::size_t way = 1; way < ways_.size(); ++way) {
      CAPTURE(way);
      CHECK(agree::close(ways_[way].first(in...), value, 1e-11));
      const auto got = ways_[way].second(in...);
      if constexpr (requires { std::tuple_size<std::decay_t<decltype(got)>>::value; }) {
        [&]<std::size_t... K>(std::index_sequence<K...>) {
          (check_close(flat(std::get<K>(got)), flat(std::get<K>(slopes))), ...);
        }
        (std::make_index_sequence<std::tuple_size_v<std::decay_t<decltype(got)>>>{});
      } else {
        check_close(flat(got), flat(slopes));
      }
    }
  }

 private:
  std::vector<std::pair<decltype(compile(std::declval<F>())), decltype(compile(grad(std::declval<F>())))>>
      ways_;
};

}  // namespace

TEST_CASE("node_splitting: iterations that read what later ones change are independent", "[passes]") {
  CHECK(parallel_loops(upwind) == 2);  // with the sum
  CHECK(parallel_loops(rows) == 4);
  CHECK(parallel_loops(triangle) >= 2);
  // What an earlier iteration has left is needed; a copy for a few elements is not worth it.
  CHECK(parallel_loops(swept) == 1);
  CHECK(parallel_loops(window) == 1);
  // Reverse mode keeps arrays, not numbers.
  CHECK(count(around_pass("unwind", grad<0>(upwind), 0).second, "push[0] %u") == 1);
}

TEST_CASE("node_splitting: one memory, where nobody asks for what was there before", "[passes]") {
  const auto copies = [](auto f) {
    return count(compile(f, {.target = Target::cpp, .opt = 3}).source("ir"), "copy %");
  };
  CHECK(copies(upwind) == 1);  // of what the caller gave
  CHECK(copies(tree) == 1);
  CHECK(copies(window) == 1);
  // They run in lanes all the same: a block reads before it writes, and the blocks keep their order.
  CHECK(count(around_pass("vectorise", upwind).second, "f64x8") >
        count(around_pass("vectorise", swept).second, "f64x8"));
  CHECK(count(around_pass("vectorise", window).second, "f64x8") >
        count(around_pass("vectorise", swept).second, "f64x8"));
}

TEST_CASE("in_place_adjoints: the adjoint of the start is added up in that of what the loop makes",
          "[passes]") {
  const auto loops = [](auto f) { return loops_in(around_pass("lower", f).second); };
  // Two forward, where values are kept, and two backward: none that adds up two arrays.
  CHECK(loops(grad<0>(upwind)) == 4);
  CHECK(loops(grad<0>(tree)) == 2);
  // Where adjoints are marked, too: the one sum of arrays left is behind the loops.
  const std::string text = around_pass("lower", grad(option)).second;
  const std::regex sums("= add %[^:]*: f64\\[\\?\\]");
  CHECK(std::distance(std::sregex_iterator(text.begin(), text.end(), sums), {}) == 1);
  // What an in-place loop can compute again is not kept: the start of v, and elements of s.
  CHECK(count(around_pass("unwind", grad(pair)).second, "push[") == 2);
}

TEST_CASE("loop_versioning: the sign of a distance is asked before the loop", "[passes]") {
  // A loop for each width of lanes, and one for negative distances.
  const auto times = [](auto f, std::string_view what) {
    return count(around_pass("vectorise", f).second, what);
  };
  CHECK(times(knapsack, "set %") > 2);
  CHECK(times(grad(knapsack), "push[") > 2);
}

TEST_CASE("loop_versioning: a loop stays as it is where no sign helps", "[passes]") {
  const auto forward = [](A u, I e) {
    FOR(0, u.size() - e, [&](I i) { u = u.set(i + e, sin(u[i])); });
    return sum(u);
  };
  const auto sums = [](A u, I e) {
    FOR(e, u.size(), [&](I i) { u = u.set(i, u[i] + u[i - e]); });
    return sum(u);
  };
  const auto behind = [](A u, I e) {
    IF(e > 0, [&] { FOR(0, u.size() - e, [&](I i) { u = u.set(i + e, sin(u[i])); }); });
    return sum(u);
  };
  const Everywhere a(forward);
  const Everywhere b(sums);
  const Everywhere c(behind);
  for (const std::int64_t e : {1, 2, 5})
    for (const std::size_t n : {5u, 17u}) a(numbers(n, 0.4), e), b(numbers(n, 0.4), e), c(numbers(n, 0.4), e);
  CHECK(compile(sums, {.target = Target::c})({1, 2, 3}, 1) == 10);
}

TEST_CASE("node_splitting: the same numbers", "[passes]") {
  const Everywhere prices(tree), early(option), wind(flux), up(upwind), sweep(swept), spread(diffusion);
  const Everywhere part(window);
  const Everywhere bag(knapsack);
  const Everywhere two(pair);
  const Everywhere plane(rows);
  const Everywhere product(triangle);
  for (const std::size_t n : {1u, 2u, 3u, 4u, 9u, 17u, 40u}) {
    CAPTURE(n);
    const std::vector<double> x = numbers(n, 0.4);
    prices(x, 0.45);
    early(x, 1.7);
    wind(x, 0.6);
    up(x, 0.3);
    sweep(x, 0.3);
    if (n >= 4) part(x, std::int64_t{1}, static_cast<std::int64_t>(n) - 2);
    part(x, std::int64_t{1}, std::int64_t{1});
    const std::vector<double> square = numbers(n * n, 0.7), other = numbers(n * 5, 0.1);
    plane(square, static_cast<std::int64_t>(n));
    product(matrix(square, n, n), matrix(other, n, 5));
    if (n >= 2) spread(x, 0.1);
    two(x, 0.7);
    for (const std::int64_t far : {-20, -3, -1, 0, 1, 2, 16, 30})
      if (std::abs(far) <= static_cast<std::int64_t>(n)) bag(x, 1.3, far);
  }
}

TEST_CASE("node_splitting: random updates in place", "[passes]") {
  std::mt19937 random(11 + static_cast<unsigned>(lanes_under_test()));
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < (deep() ? 240 : 8); ++round) {
    struct Update {
      int at, first, second;
      bool adds;
    };
    std::vector<Update> updates;
    for (int k = pick(1, 3); k > 0; --k)
      updates.push_back({pick(-2, 2), pick(-3, 3), pick(-3, 3), pick(0, 2) == 0});
    const bool down = pick(0, 1) == 1, whole = pick(0, 1) == 1;
    const auto program = [=](A u, D c, I from) {
      const I n = u.size(), first = whole ? I(3) : from;
      FOR(first, n - 3, [&](I k) {
        const I i = down ? first + n - 4 - k : k;
        for (const Update& to : updates) {
          const D x = 0.4 * u[i + to.first] + c * u[i + to.second];
          u = u.set(i + to.at, to.adds ? u[i + to.at] + 0.1 * x : x);
        }
      });
      return sum(u * u);
    };
    CAPTURE(round, down, whole, updates.size());
    const Everywhere check(program);
    const auto staged = compile(grad(program), {.target = Target::c});
    for (const std::size_t n : {6u, 7u, 15u, 44u}) {
      const std::vector<double> x = numbers(n, 0.2 * round);
      check(x, 0.3, std::int64_t{3});
      const auto slopes = eager(grad(program))(x, 0.3, 3), got = staged(x, 0.3, std::int64_t{3});
      check_close(std::get<0>(got), std::get<0>(slopes));
      CHECK(agree::close(std::get<1>(got), std::get<1>(slopes), 1e-11));
    }
  }
}

// An array is made of another one, and copied back.
/// Two buffers; the sum at the end asks for both.
D diffused(A u, D c, I from, I steps) {
  A w = u;
  FOR(0, steps, [&](I) {
    FOR(from, u.size() - 1, [&](I i) { w = w.set(i, u[i] + c * (u[i - 1] - 2.0 * u[i] + u[i + 1] * u[i])); });
    FOR(from, u.size() - 1, [&](I i) { u = u.set(i, w[i]); });
  });
  return sum(u * w);
}
/// Two pairs in one loop each, in a flat array, with a third that is none.
D two_fields(A u, D c, I n, I steps) {
  A a = u, b = u, v = u, last = u;
  FOR(0, steps, [&](I) {
    FOR(1, n - 1, [&](I i) {
      FOR(1, n - 1, [&](I j) {
        const I k = i * n + j;
        a = a.set(k, u[k] + c * (v[k - 1] - u[k + n]));
        b = b.set(k, v[k] - c * u[k] * v[k + 1]);
      });
    });
    FOR(1, n - 1, [&](I i) {
      FOR(1, n - 1, [&](I j) {
        u = u.set(i * n + j, a[i * n + j]);
        v = v.set(i * n + j, b[i * n + j]);
      });
    });
    last = last.set(0, last[0] + a[0]);
  });
  return sum(u * v) + sum(a * b) + sum(last * last);
}
/// A buffer of its own in each step.
D fresh(A u, D c, I, I steps) {
  FOR(0, steps, [&](I) {
    A w = u;
    FOR(1, u.size() - 1, [&](I i) { w = w.set(i, u[i] - c * u[i - 1] * u[i + 1]); });
    FOR(1, u.size() - 1, [&](I i) { u = u.set(i, w[i]); });
  });
  return sum(u * u);
}
/// What the buffer held is read before it is written, and asked for by the condition.
D remembered(A u, D c, I, I) {
  A w = u;
  I t = 0;
  WHILE([&] { return (t < 4) & (w[0] + w[u.size() - 1] < 5.0); },
        [&] {
          D s = 0.0;
          FOR(0, u.size(), [&](I i) { s = s + w[i] * w[i]; });
          FOR(0, u.size(), [&](I i) { w = w.set(i, u[i] + c * s); });
          FOR(0, u.size(), [&](I i) { u = u.set(i, w[i]); });
          t = t + 1;
        });
  return sum(w * u);
}
/// None of these may change places: other elements, another start, a value that is no copy, a boundary that
/// is set afterwards, elements that are written in some iterations, or read while they are written.
template <int k>
D no_exchange(A u, D c, I, I steps) {
  A w = k == 1 ? u * 2.0 : u;
  const I n = u.size();
  FOR(0, steps, [&](I) {
    FOR(1, n - 1, [&](I i) {
      const D x = u[i] + c * (u[i - 1] - u[i + 1]) + (k == 2 ? w[i - 1] : D(0.0));
      if constexpr (k == 4)
        IF(u[i] > 0.0, [&] { w = w.set(i, x); });
      else
        w = w.set(i, x);
    });
    FOR(k == 0 ? 2 : 1, n - 1, [&](I i) { u = u.set(i, k == 3 ? 0.5 * w[i] : w[k == 5 ? i - 1 : i]); });
    if constexpr (k == 6) u = u.set(0, u[n - 1] * c);
  });
  return sum(u * w);
}

/// Of other elements in each step: what a step leaves out is older than it in one of the arrays.
template <int k>
D other_elements(A u, D c, I, I steps) {
  A w = u;
  const I n = u.size();
  FOR(0, steps, [&](I s) {
    const I from = k == 2 ? I(0) : s, to = k == 1 ? n : k == 2 ? n - s : min(s + 1, n);
    FOR(from, to, [&](I i) { w = w.set(i, u[i] * u[(i + 1) % n] + c); });
    FOR(from, to, [&](I i) { u = u.set(i, w[i]); });
  });
  return sum(u * w);
}

/// The value and the gradient: those of eager, for which no pass runs.
template <class F>
class Compared {
 public:
  explicit Compared(F f, CompileOptions way = {.target = Target::c}) : f_(f), fast_(compile(f, way)), slopes_(compile(grad(f), way)) {}
  template <class... In>
  void operator()(const In&... in) const {
    CHECK(agree::close(fast_(in...), eager(f_)(in...), 1e-11));
    const auto [u, c] = eager(grad(f_))(in...);
    const auto [v, d] = slopes_(in...);
    check_close(v, u);
    CHECK(agree::close(d, c, 1e-11));
  }

 private:
  F f_;
  decltype(compile(std::declval<F>())) fast_;
  decltype(compile(grad(std::declval<F>()))) slopes_;
};

TEST_CASE("double_buffering: an array that is made and copied back changes places", "[passes]") {
  const auto loops = [](auto f) { return loops_in(around_pass("canonical_loops", f).second); };
  CHECK(loops(diffused) == 2);
  CHECK(loops(fresh) == 2);
  CHECK(loops(two_fields) == 3);
  CHECK(loops(remembered) == 3);
  CHECK(loops(no_exchange<0>) == 3);
  CHECK(loops(no_exchange<1>) == 3);
  const Compared c(two_fields, {.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()});
  const Compared a(diffused), b(fresh), d(remembered);
  const Compared others(no_exchange<0>), start(no_exchange<1>), reads(no_exchange<2>), factor(no_exchange<3>);
  const Compared some(no_exchange<4>), shifted(no_exchange<5>), boundary(no_exchange<6>);
  const Compared later(other_elements<1>), earlier(other_elements<2>), one(other_elements<3>);
  for (const std::int64_t n : {2, 3, 4, 5, 11})
    for (const std::int64_t steps : {0, 1, 2, 5}) {
      CAPTURE(n, steps);
      const std::vector<double> x = numbers(static_cast<std::size_t>(n), 0.4);
      a(x, 0.2, std::int64_t{1}, steps), a(x, 0.2, n, steps);
      b(x, 0.2, n, steps), d(x, 0.2, n, steps);
      others(x, 0.2, n, steps), start(x, 0.2, n, steps), reads(x, 0.2, n, steps), factor(x, 0.2, n, steps);
      some(x, 0.2, n, steps), shifted(x, 0.2, n, steps), boundary(x, 0.2, n, steps);
      later(x, 0.2, n, steps), earlier(x, 0.2, n, steps), one(x, 0.2, n, steps);
      c(numbers(static_cast<std::size_t>(n * n), 0.4), 0.2, n, steps);
    }
}

TEST_CASE("a loop over examples takes the memory of a block, also where there is another version of it",
          "[passes]") {
  const auto gradient = compile(grad(trees), {.target = Target::cpp, .opt = 3, .lanes = lanes_under_test()});
  const auto bytes = [&](std::size_t examples) {
    std::int64_t most = 0;
    std::thread([&] {
      gradient(numbers(examples, 0.4), 0.45, 200);
      most = core::driver::workspace_bytes();
    }).join();
    return most;
  };
  CHECK(bytes(320) < 2 * bytes(64));  // of as many as run at once
}
