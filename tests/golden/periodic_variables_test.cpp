// periodic_variables: integers that a loop hands on in turn, and that no number changes.
#include <catch2/catch.hpp>
#include <sstream>

#include "../correctness/against_eager.hpp"
#include "../occurrences.hpp"
#include "around_pass.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

/// One step of a row, from one place to another.
A advanced(A u, I n, I from, I to) {
  FOR(1, n, [&](I i) { u = u.set(to + i, u[from + i] * (1.0 - 0.3 * cos(u[from + i - 1]))); });
  return u;
}
/// Two places that change; the last row's.
I changing(A& u, I n, I steps) {
  I from = 0, to = n;
  FOR(0, steps, [&](I) {
    u = advanced(u, n, from, to);
    const I k = from;
    from = to;
    to = k;
  });
  return from;
}
D swapped(A u, I n, I steps) {
  const I last = changing(u, n, steps);
  return sum(u * u) + u[last];
}
/// The number of the row.
D complemented(A u, I n, I steps) {
  I now = 0;
  FOR(0, steps, [&](I) {
    const I next = 1 - now;
    u = advanced(u, n, now * n, next * n);
    now = next;
  });
  return sum(u * u) + cast<double>(now);
}
D flipped(A u, I n, I steps) {
  I now = 1;
  FOR(3, steps + 3, [&](I) {
    const I next = now ^ 1;
    u = advanced(u, n, now * n, next * n);
    now = next;
  });
  return sum(u * u) + cast<double>(now);
}
D counted(A u, I n, I steps) {
  I now = 2;
  FOR(0, steps, [&](I) {
    const I next = (now + 1) % 3;
    u = advanced(u, n, now * n, next * n);
    now = next;
  });
  return sum(u * u) + cast<double>(now);
}
/// Three places that rotate.
D rotated(A u, I n, I steps) {
  I before = 0, now = n, next = 2 * n;
  FOR(0, steps, [&](I) {
    FOR(1, n - 1, [&](I i) {
      u = u.set(next + i,
                1.2 * u[now + i] - 0.7 * u[before + i] + 0.2 * sin(u[now + i + 1] * u[now + i - 1]));
    });
    const I k = before;
    before = now;
    now = next;
    next = k;
  });
  return sum(u * u) + u[now] * 2.0;
}
/// The other row by what the remainder is not.
D other_row(A u, I n, I steps) {
  FOR(0, steps, [&](I t) {
    const I from = t % 2 * n, to = n - from;
    u = advanced(u, n, from, to);
  });
  return sum(u * u);
}
D lowest_bit(A u, I n, I steps) {
  FOR(0, steps, [&](I t) { u = advanced(u, n, (t & I(1)) * n, (1 - (t & I(1))) * n); });
  return sum(u * u);
}
/// Rows of a matrix.
D of_matrix(M u, I steps) {
  const I n = u.dim(1);
  I now = 0, next = 1;
  FOR(0, steps, [&](I) {
    FOR(1, n, [&](I i) { u = u.set(next, i, sin(u(now, i)) + 0.2 * cos(u(now, i - 1))); });
    const I k = now;
    now = next;
    next = k;
  });
  return sum(u * u);
}
/// In a loop around, from where the last one stopped.
D nested(A u, I n, I steps) {
  FOR(0, 3, [&](I) {
    const I last = changing(u, n, steps);
    u = u.set(last, u[last] * 0.5);
  });
  return sum(u * u);
}
/// Not at equal distances; a sum that grows; a condition that asks for it.
D unequal(A u, I n, I steps) {
  I a = 0, b = 1, c = 5;
  FOR(0, steps, [&](I) {
    u = u.set(a, u[b] * 0.9 + u[c]);
    const I k = a;
    a = b;
    b = c;
    c = k;
  });
  return sum(u * u) + cast<double>(n);
}
D growing(A u, I n, I steps) {
  I c = 1, now = 0;
  FOR(0, steps, [&](I) {
    u = u.set(n - 1, u[n - 1] * 0.9 + cast<double>(now));
    now = c - now;
    c = c + 1;
  });
  return sum(u * u);
}
D asked(A u, I n, I steps) {
  I now = 0, t = 0;
  WHILE([&] { return t + now < steps; },
        [&] {
          u = u.set(now, u[now] * 0.9 + 0.1 * u[n - 1]);
          now = 1 - now;
          t = t + 1;
        });
  return sum(u * u);
}

/// Integers that loops hand on beside their counters.
template <class F>
std::size_t integers(F f) {
  std::istringstream text(around_pass("canonical_loops", f).second);
  std::size_t all = 0;
  for (std::string line; std::getline(text, line);)
    if (const auto at = line.find("= loop "); at != std::string::npos) {
      line = line.substr(line.find(" : ", at), line.find(" while ") - line.find(" : ", at));
      all += count(line, "i64") - 1;
    }
  return all;
}

std::vector<double> draw(std::int64_t n) { return numbers(static_cast<std::size_t>(n), 0.4); }

}  // namespace

TEST_CASE("periodic_variables: loops hand on no integers but what they count", "[passes]") {
  CHECK(integers(swapped) == 0);
  CHECK(integers(complemented) == 0);
  CHECK(integers(flipped) == 0);
  CHECK(integers(counted) == 0);
  CHECK(integers(rotated) == 0);
  CHECK(integers(of_matrix) == 0);
  CHECK(integers(nested) == 0);
  CHECK(integers(unequal) == 3);
  CHECK(integers(growing) == 2);
  CHECK(integers(asked) == 1);
}

TEST_CASE("periodic_variables: their rows become arrays", "[passes]") {
  // The loop is there twice, once with arrays that change places, for sizes that are told when the program
  // runs.
  const auto arrays = [](auto f) { return count(around_pass("simplify", f).second, " = branch ") > 0; };
  CHECK(arrays(swapped));
  CHECK(arrays(complemented));
  CHECK(arrays(flipped));
  CHECK(arrays(counted));
  CHECK(arrays(rotated));
  CHECK(arrays(other_row));
  CHECK(arrays(lowest_bit));
  CHECK_FALSE(arrays(unequal));
}

TEST_CASE("periodic_variables: the same numbers", "[passes]") {
  const Checked a(swapped), b(complemented), c(flipped), d(counted), e(rotated), f(other_row);
  const Checked g(lowest_bit), h(nested), i(unequal), j(growing), k(asked);
  for (const std::int64_t n : {1, 2, 3, 9, 18})
    for (const std::int64_t steps : {0, 1, 2, 3, 8, 13, 22}) {
      CAPTURE(n, steps);
      const auto two = draw(2 * n), three = draw(3 * n + 3), six = draw(n + 6);
      a(two, n, steps), b(two, n, steps), c(two, n, steps), f(two, n, steps), g(two, n, steps),
          h(two, n, steps);
      d(three, n, steps), e(three, n, steps);
      i(six, n, steps), j(six, n, steps), k(six, n, steps);
    }
}

TEST_CASE("periodic_variables: the same numbers in matrices", "[passes]") {
  const Checked a(of_matrix);
  for (const std::int64_t n : {0, 1, 2, 9, 18})
    for (const std::int64_t steps : {0, 1, 7, 8, 18}) {
      CAPTURE(n, steps);
      TensorValue<double> u({2, n}, 0.0);
      u.data = draw(2 * n);
      a(u, steps);
    }
}

TEST_CASE("periodic_variables: what lies outside is an error", "[passes]") {
  const Checked a(swapped), b(rotated);
  a.fails(draw(19), std::int64_t{10}, std::int64_t{70});
  b.fails(draw(29), std::int64_t{10}, std::int64_t{70});
}
