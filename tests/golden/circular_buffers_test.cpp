// circular_buffers: which tensors become one array for each row, and that no number changes.
#include <catch2/catch.hpp>
#include <random>
#include <sstream>

#include "../correctness/against_eager.hpp"
#include "../occurrences.hpp"
#include "around_pass.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

/// Two rows of a flat array.
D drift(A u, I n, I steps) {
  FOR(0, steps, [&](I t) {
    const I from = t % 2 * n, to = (t + 1) % 2 * n;
    FOR(1, n, [&](I i) { u = u.set(to + i, u[from + i] * (1.0 - 0.3 * u[from + i - 1])); });
  });
  return sum(u * u);
}
/// One element by itself: whether there is one is known when the program runs.
D with_edge(A u, I n, I steps) {
  FOR(0, steps, [&](I t) {
    const I from = t % 2 * n, to = (t + 1) % 2 * n;
    FOR(1, n, [&](I i) { u = u.set(to + i, u[from + i] * cos(u[from + i - 1])); });
    u = u.set(to, u[from] * 0.9);
  });
  return sum(u * u);
}
/// Three rows, the oldest of which is read as the one that is next.
D waves(A u, I n, I steps) {
  FOR(1, steps, [&](I t) {
    const I now = t % 3 * n, next = (t + 1) % 3 * n;
    FOR(1, n - 1, [&](I i) {
      u = u.set(next + i,
                u[now + i] * 1.2 - 0.7 * u[(t - 1) % 3 * n + i] + 0.2 * sin(u[now + i + 1] * u[now + i - 1]));
    });
  });
  return sum(u * u);
}
/// Rows of a matrix, and what the step itself has made.
D planes(M u, I steps) {
  const I n = u.dim(1);
  FOR(0, steps, [&](I t) {
    FOR(1, n, [&](I i) {
      u = u.set((t + 2) % 3, i, sin(u((t + 1) % 3, i)) + 0.2 * cos(u((t + 2) % 3, i - 1) * u(t % 3, i)));
    });
  });
  return sum(u * u);
}
/// The rows are columns, in four.
D columns(M u, I steps) {
  FOR(0, steps, [&](I t) {
    FOR(0, u.dim(0), [&](I i) { u = u.set(i, (t + 3) % 4, cos(u(i, t % 4) * u(i, (t + 1) % 4))); });
  });
  return sum(u * u);
}
/// A choice in each iteration, sums into elements, and a loop around.
D chosen(A u, I n, I steps) {
  FOR(0, 2, [&](I) {
    FOR(0, steps, [&](I t) {
      const I from = t % 2 * n, to = (t + 1) % 2 * n;
      FOR(0, n, [&](I i) {
        IF(
            u[from + i] > 0.5, [&] { u = u.set(to + i, 0.9 * u[from + i]); },
            [&] { u = u.set(from + i, 0.6 * u[from + i] + 0.3 * u[to + i]); });
      });
    });
  });
  return sum(u * u);
}
/// The first step is the caller's: remainders may be negative.
D from_step(A u, I n, I first, I steps) {
  FOR(first, first + steps,
      [&](I t) { FOR(0, n, [&](I i) { u = u.set((t + 1) % 2 * n + i, 0.8 * u[t % 2 * n + i]); }); });
  return sum(u * u);
}
/// The first step lies below 0, where & and % differ.
D from_below(A u, I n, I steps) {
  FOR(-3, steps, [&](I t) {
    const I now = (t & 1) * n;
    FOR(0, n, [&](I i) { u = u.set(n - now + i, 0.8 * u[now + i]); });
  });
  return sum(u * u);
}
/// Rows may run into the next one.
D spilling(A u, I n, I stride, I steps) {
  FOR(0, steps, [&](I t) {
    FOR(0, n,
        [&](I i) { u = u.set((t + 1) % 2 * stride + i, 0.8 * u[t % 2 * stride + i] * u[t % 2 * stride]); });
  });
  return sum(u * u);
}
/// Something else is read, too.
D not_alone(A u, I n, I steps) {
  FOR(0, steps,
      [&](I t) { FOR(0, n, [&](I i) { u = u.set((t + 1) % 2 * n + i, u[t % 2 * n + i] * cos(u[i])); }); });
  return sum(u * u);
}
D whole(A u, I n, I steps) {
  D s = 0.0;
  FOR(0, steps, [&](I t) {
    FOR(0, n, [&](I i) { u = u.set((t + 1) % 2 * n + i, u[t % 2 * n + i] * 0.5); });
    s = s + sum(u);
  });
  return sum(u * u) + s;
}

/// The same of a buffer whose size is known.
template <auto program, int rows>
D in_own(A x, I n, I steps) {
  A u = fill(D(0.0), rows * n);
  FOR(0, n, [&](I i) { u = u.set(i, x[i]); });
  return program(u, n, steps);
}
template <auto program, int rows, int columns>
D in_own_matrix(A x, I n, I steps) {
  M u = rows == 0 ? fill(D(0.0), n, I(columns)) : fill(D(0.0), I(rows), n);
  FOR(0, n, [&](I i) { u = rows == 0 ? u.set(i, 0, x[i]) : u.set(0, i, x[i]); });
  return program(u, steps);
}

/// Sizes and steps that are known.
template <auto program, int rows, int steps = 70>
D for_steps(A x) {
  return in_own<program, rows>(x, 100, steps);
}
template <auto program, int rows, int columns>
D for_steps_of_matrix(A x) {
  return in_own_matrix<program, rows, columns>(x, 100, 70);
}
/// Of each row, one element.
D one_element(A x) {
  const I n = 100;
  A u = x;
  FOR(0, 40, [&](I t) { u = u.set((t + 1) % 2 * n, u[t % 2 * n] * 0.5); });
  return sum(u * u);
}

/// Remainders that are computed in loops.
template <class F>
std::size_t remainders(F f) {
  std::istringstream text(around_pass("simplify", f).second);
  std::size_t inside = 0;
  for (std::string line; std::getline(text, line);)
    inside += line.starts_with("    ") && line.find("= rem ") != std::string::npos;
  return inside;
}

std::vector<double> draw(std::int64_t n) {
  std::mt19937 generator(static_cast<unsigned>(n));
  std::uniform_real_distribution<double> distribution(0.2, 1.1);
  std::vector<double> all(static_cast<std::size_t>(n));
  for (double& x : all) x = distribution(generator);
  return all;
}

}  // namespace

TEST_CASE("circular_buffers: rows of remainders become arrays", "[passes]") {
  CHECK(remainders(for_steps<drift, 2>) == 0);
  CHECK(remainders(for_steps<waves, 3>) == 0);
  CHECK(remainders(for_steps_of_matrix<planes, 3, 0>) == 0);
  CHECK(remainders(for_steps_of_matrix<columns, 0, 4>) == 0);
  CHECK(remainders(grad<0>(for_steps<drift, 2>)) == 0);
  CHECK(remainders(for_steps<chosen, 2>) == 2);  // behind the loop over steps
  CHECK(remainders(for_steps<not_alone, 2>) > 0);
  CHECK(remainders(for_steps<whole, 2>) > 0);
  CHECK(remainders(spilling) > 0);
  // Where that is asked before the loop, the loop is there twice.
  const auto twice = [](auto f) { return count(around_pass("simplify", f).second, " = branch "); };
  CHECK(twice(in_own<drift, 2>) == 2);  // the copy asks for the distance of rows
  CHECK(twice(drift) == 2);
  CHECK(twice(from_step) == 1);
  // Not where that is known.
  CHECK(twice(for_steps<drift, 2>) == 0);
  // Nor where copies would cost more than they save.
  CHECK(remainders(for_steps<drift, 2, 7>) > 0);
  CHECK(remainders(one_element) > 0);
}

TEST_CASE("circular_buffers: the same numbers in flat arrays", "[passes]") {
  const Checked a(drift), b(with_edge), c(waves), d(chosen), e(not_alone), f(whole), k(from_below);
  const Checked g(spilling), h(from_step);
  for (const std::int64_t n : {1, 2, 3, 8, 17, 19})
    for (const std::int64_t steps : {0, 1, 7, 8, 13, 22}) {
      CAPTURE(n, steps);
      for (const std::int64_t more : {0, 5}) {
        const auto x = draw(2 * n + more);
        a(x, n, steps), b(x, n, steps), d(x, n, steps), e(x, n, steps), f(x, n, steps);
        c(draw(3 * n + more), n, steps);
        g(x, n, n, steps);
        if (n > 2) g(x, n, n - 2, steps), g(x, n - 2, n, steps);
        h(x, n, std::int64_t{0}, steps), h(x, n, std::int64_t{5}, steps), k(x, n, steps);
      }
    }
  a(draw(0), std::int64_t{0}, std::int64_t{40});
  a(draw(4), std::int64_t{0}, std::int64_t{40});
  c(draw(5), std::int64_t{1}, std::int64_t{50});
}

TEST_CASE("circular_buffers: the same numbers in matrices", "[passes]") {
  const Checked a(planes), b(columns);
  for (const std::int64_t n : {0, 1, 2, 9, 18})
    for (const std::int64_t steps : {0, 1, 15, 16, 18}) {
      CAPTURE(n, steps);
      for (const std::int64_t rows : {4, 5}) {
        TensorValue<double> u({rows - 1, n}, 0.0), v({n, rows}, 0.0);
        u.data = draw((rows - 1) * n), v.data = draw(n * rows);
        a(u, steps), b(v, steps);
      }
    }
}

TEST_CASE("circular_buffers: what lies outside is an error", "[passes]") {
  const Checked a(drift), b(with_edge);
  const Checked c(from_step), d(spilling);
  a.fails(draw(19), std::int64_t{10}, std::int64_t{70});
  b.fails(draw(0), std::int64_t{0}, std::int64_t{70});
  c.fails(draw(20), std::int64_t{10}, std::int64_t{-1}, std::int64_t{70});
  d.fails(draw(20), std::int64_t{11}, std::int64_t{10}, std::int64_t{70});
  const Checked e(planes);
  e.fails(TensorValue<double>({2, 5}, 0.5), std::int64_t{70});
}

TEST_CASE("circular_buffers: random steps", "[passes]") {
  std::mt19937 generator(5);
  const auto any = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(generator); };
  for (int round = 0; round < 16; ++round) {
    const int rows = any(2, 4), first = any(0, 3), to = any(0, rows - 1), a = any(0, rows - 1),
              b = any(0, rows - 1);
    const int left = any(0, 2), right = any(0, 2), back = any(0, 1);
    CAPTURE(rows, first, to, a, b, left, right, back);
    const auto f = [=](A u, I n, I steps) {
      FOR(first, steps + first, [&](I t) {
        FOR(2, n - 2, [&](I i) {
          const I k = back ? n - 1 - i : i;
          u = u.set((t + to) % rows * n + k,
                    0.6 * u[(t + a) % rows * n + k - left] +
                        0.3 * cos(u[(t + b) % rows * n + k + right] * u[(t + to) % rows * n + k]));
        });
      });
      return sum(u * u);
    };
    const Checked checked(sig<double(Array<double>, std::int64_t, std::int64_t)>(f));
    for (const std::int64_t n : {4, 5, 23})
      for (const std::int64_t steps : {2, 17, 19}) checked(draw(rows * n), n, steps);
  }
}
