// What a parallel loop reads of an array that is overwritten later is kept in parts: the rows that it reads,
// not what lies between them.
#include <catch2/catch.hpp>
#include <regex>

#include "../occurrences.hpp"
#include "row_programs.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

/// Rows made orthogonal one after another: what a row was is kept, not the rows between two.
D orthogonal(A a, I n, I m) {
  A q = a;
  D s = 0.0;
  FOR(0, n, [&](I i) {
    const D r = sqrt(total(m, [&](I k) { return q[i * m + k] * q[i * m + k]; }));
    s += r;
    FOR(0, m, [&](I k) { q = q.set(i * m + k, q[i * m + k] / r); });
    FOR(i + 1, n, [&](I j) {
      const D p = total(m, [&](I k) { return q[i * m + k] * q[j * m + k]; });
      FOR(0, m, [&](I k) { q = q.set(j * m + k, q[j * m + k] - p * q[i * m + k]); });
    });
  });
  return s;
}
/// The same elements, and their neighbours, read in one loop: parts that lie beside each other are one.
D neighbours(A a, I steps, I m) {
  A q = a;
  D s = 0.0;
  FOR(0, steps, [&](I t) {
    const D p = total(m, [&](I k) { return q[t + k] * q[t + k + 1] + sin(q[t + k + 2]) * q[k]; });
    s += p;
    FOR(0, m, [&](I k) { q = q.set(t + k, q[t + k] * 0.5 + p * 0.1); });
  });
  return s + sum(q * q);
}
/// More rows than there are parts.
D many(A a, I n, I m) {
  A q = a;
  D s = 0.0;
  FOR(0, n, [&](I t) {
    const I u = (t + 1) % n, v = (t + 2) % n, w = (t + 3) % n, x = (t + 4) % n, y = (t + 5) % n;
    const D p = total(m, [&](I k) {
      return q[t * m + k] * q[u * m + k] * q[v * m + k] + q[w * m + k] * q[x * m + k] * sin(q[y * m + k]);
    });
    s += p * p;
    FOR(0, m, [&](I k) { q = q.set(v * m + k, q[v * m + k] * 0.5 + p * 0.1); });
  });
  return s;
}
/// What one of the reads needs is left in the array, or not read at all.
D branched(A a, I n, I m) {
  A q = a;
  D s = 0.0;
  FOR(0, n, [&](I t) {
    const D p = total(m, [&](I k) {
      return IF(
          t > 1, [&] { return q[k] * q[t * m + k]; }, [&] { return q[t * m + k] * q[t * m + k]; });
    });
    s += p;
    FOR(0, m, [&](I k) { q = q.set(t * m + k, q[t * m + k] + p); });
  });
  return s;
}

/// Columns of a matrix made orthogonal one after another: of the matrix each step reads one column before it changes.
D columns(A a, I n, I m) {
  M q = fill(D(0.0), n, m);
  FOR(0, n, [&](I i) { FOR(0, m, [&](I k) { q = q.set(i, k, a[i * m + k]); }); });
  D s = 0.0;
  FOR(0, m, [&](I k) {
    const D r = sqrt(total(n, [&](I i) { return q(i, k) * q(i, k); }));
    s += r;
    FOR(0, n, [&](I i) { q = q.set(i, k, q(i, k) / r); });
    FOR(k + 1, m, [&](I j) {
      const D p = total(n, [&](I i) { return q(i, k) * q(i, j); });
      FOR(0, n, [&](I i) { q = q.set(i, j, q(i, j) - p * q(i, k)); });
    });
  });
  return s;
}
/// Factors of a matrix, column by column: a sum goes to the smaller of two counters, and all that it reads is final.
D crout(A a, I n, I m) {
  M l = fill(D(0.0), n, n);
  FOR(0, n, [&](I i) { FOR(0, n, [&](I j) { l = l.set(i, j, a[i * m + j]); }); });
  FOR(0, n, [&](I j) {
    FOR(0, n, [&](I i) {
      const D s = total(min(i, j), [&](I k) { return l(i, k) * l(k, j); });
      l = l.set(i, j, l(i, j) - s);
    });
    FOR(j + 1, n, [&](I i) { l = l.set(i, j, l(i, j) / l(j, j)); });
  });
  return total(n, [&](I i) { return log(abs(l(i, i))); });
}

/// Rows that are far from a combination of others.
/// Points that move by what all others do to them; the array is longer than their number says.
D all_pairs(A a, I n, I steps) {
  A x = a, f = a;
  FOR(0, steps, [&](I) {
    FOR(0, n, [&](I i) {
      f = f.set(i, total(n, [&](I j) { return (x[j] - x[i]) / ((x[j] - x[i]) * (x[j] - x[i]) + 0.5); }));
    });
    FOR(0, n, [&](I i) { x = x.set(i, x[i] + 0.1 * f[i]); });
  });
  return sum(x * x);
}
/// Each pair once: both of its points take part in what it does.
D each_pair(A a, I n, I steps) {
  A x = a;
  FOR(0, steps, [&](I) {
    A f = fill(D(0.0), n);
    FOR(0, n, [&](I i) {
      FOR(i + 1, n, [&](I j) {
        const D d = x[j] - x[i], k = d / sqrt(d * d + 0.5);
        f = f.set(i, f[i] + k);
        f = f.set(j, f[j] - k);
      });
    });
    FOR(0, n, [&](I i) { x = x.set(i, x[i] + 0.1 * f[i]); });
  });
  return sum(x * x);
}
/// What an iteration has added to an element a later one reads: the order counts.
D read_between(A a, I n, I steps) {
  A x = a;
  D s = 0.0;
  FOR(0, steps, [&](I) {
    FOR(0, n - 1, [&](I i) {
      s += sin(x[i]);
      x = x.set(i + 1, x[i + 1] + 0.3 * cos(x[i]));
    });
  });
  return s;
}

std::vector<double> rows(std::size_t n) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(0.4 + 1.3 * static_cast<double>(i * i % 101));
  return v;
}

template <class F>
void check(const char* name, const F& f, const std::vector<double>& x, std::int64_t n, std::int64_t m) {
  CAPTURE(name, n, m);
  const std::vector<double> slope = eager(grad<0>(f))(x, n, m);
  for (const CompileOptions& way :
       {CompileOptions{.target = Target::c, .opt = 0}, CompileOptions{.target = Target::c},
        CompileOptions{.target = Target::cpp, .opt = 3}}) {
    CAPTURE(way.opt);
    check_close(compile(grad<0>(f), way)(x, n, m), slope);
  }
}

}  // namespace

TEST_CASE("parts of arrays that are overwritten", "[passes]") {
  for (const auto& [n, m] :
       {std::pair{0, 0}, std::pair{1, 1}, std::pair{3, 1}, std::pair{4, 5}, std::pair{7, 17}}) {
    const auto size = static_cast<std::size_t>(n * m);
    if (n <= m) check("orthogonal", orthogonal, rows(size), n, m);
    check("many", many, numbers(size, 0.4), n, m);
    check("branched", branched, numbers(size, 0.4), n, m);
    if (m <= n) check("columns", columns, rows(size), n, m);
    check("neighbours", neighbours, numbers(static_cast<std::size_t>(n + m + 2), 0.4), n, m);
  }
}

TEST_CASE("a column is kept, not the matrix", "[passes]") {
  check("columns", columns, rows(17 * 9), 17, 9);
  const std::string ir = compile(grad<0>(columns), CompileOptions{.target = Target::c}).source("ir");
  CHECK(count(ir, " = pop[") > 0);
  CHECK(!std::regex_search(ir, std::regex(R"(= pop\[\d+\] : f64\[\?,)")));
}

TEST_CASE("what sums up to the smaller of two counters read is found in the factors", "[passes]") {
  for (const std::int64_t n : {0, 1, 2, 5, 20}) {
    std::vector<double> x = rows(static_cast<std::size_t>(n * (n + 1)));
    for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i * (n + 1) + i)] += 10;
    check("crout", crout, x, n, n + 1);
  }
  // One number for each division, none for the sums.
  const CompileOptions scalars{.target = Target::c, .disabled_passes = {"vectorise"}};
  CHECK(count(compile(grad<0>(crout), scalars).source("ir"), " = pop[") == 1);
}

TEST_CASE("of pairs the points are kept, not what is computed of them", "[passes]") {
  for (const std::int64_t n : {0, 1, 2, 3, 9, 20})
    for (const std::int64_t more : {0, 3})
      for (const std::int64_t steps : {0, 1, 3}) {
        const std::vector<double> x = numbers(static_cast<std::size_t>(n + more), 0.4);
        check("all_pairs", all_pairs, x, n, steps);
        check("each_pair", each_pair, x, n, steps);
        check("read_between", read_between, x, n, steps);
      }
  const std::regex number(R"(= pop\[\d+\] : (f64|bool|i64)\b(?!\[))");
  const CompileOptions scalars{.target = Target::c, .disabled_passes = {"vectorise"}};
  CHECK_FALSE(std::regex_search(compile(grad<0>(all_pairs), scalars).source("ir"), number));
}
