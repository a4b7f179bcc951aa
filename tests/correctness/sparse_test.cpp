// sparse_jacobian and sparse_hessian: patterns, numbers of colours, entries against dense matrices.
#include <fmt/format.h>

#include <random>

#include "agree.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using ad::Pattern;

// ---- programs

/// y_i = (3 - 2 x_i) x_i - x_{i-1} - 2 x_{i+1} + 1 (Broyden's tridiagonal function).
A tridiagonal(A x) {
  return FOR(0, x.size(), x, [&](I i, A y) {
    const D left = IF(
        i > 0, [&] { return x[i - 1]; }, [] { return 0.0; });
    const D right = IF(
        i + 1 < x.size(), [&] { return x[i + 1]; }, [] { return 0.0; });
    return y.set(i, (3.0 - 2.0 * x[i]) * x[i] - left - 2.0 * right + 1.0);
  });
}

/// The first row and column, and the diagonal.
A arrow(A x) {
  const A y = x * x * x[0];
  return y.set(0, sum(sin(x)));
}

/// y_i = product of x_{i-2} .. x_{i+2}.
A banded(A x) {
  return FOR(0, x.size(), x, [&](I i, A y) {
    return y.set(i, FOR(max(i - 2, 0), min(i + 3, x.size()), D(1.0), [&](I k, D p) { return p * x[k]; }));
  });
}

/// Bundle adjustment in small: observation k of camera c[k] (3 parameters) and point p[k] (2 parameters,
/// after the cameras) has two residuals.
A observations(A x, I cameras, Rep<Array<std::int64_t>> c, Rep<Array<std::int64_t>> p) {
  return FOR(0, c.size(), fill(D(0.0), 2 * c.size()), [&](I k, A r) {
    const I at = 3 * c[k], to = 3 * cameras + 2 * p[k];
    const D u = x[to] * cos(x[at]) - x[to + 1] * sin(x[at]) + x[at + 1];
    const D v = x[to] * sin(x[at]) + x[to + 1] * cos(x[at]) + x[at + 2];
    return r.set(2 * k, u * u).set(2 * k + 1, u * v);
  });
}

/// A chained Rosenbrock function: its Hessian is tridiagonal.
D rosenbrock(A x) {
  return FOR(0, x.size() - 1, D(0.0), [&](I i, D s) {
    const D a = x[i + 1] - x[i] * x[i], b = 1.0 - x[i];
    return s + 100.0 * a * a + b * b;
  });
}
/// Its Hessian is an arrow.
D hub(A x) { return sum(x * x * x) * 0.5 + sin(x[0]) * sum(x); }

std::vector<double> point(std::size_t n) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = 0.3 + std::sin(static_cast<double>(3 * i + 1));
  return x;
}

// ---- checks

std::vector<double> dense_of(const Sparsity& s, const std::vector<double>& values) {
  std::vector<double> dense(static_cast<std::size_t>(s.rows * s.columns), 0.0);
  for (std::int64_t i = 0; i < s.rows; ++i)
    for (std::int64_t k = s.row_start[static_cast<std::size_t>(i)];
         k < s.row_start[static_cast<std::size_t>(i + 1)]; ++k)
      dense[static_cast<std::size_t>(i * s.columns + s.column[static_cast<std::size_t>(k)])] =
          values[static_cast<std::size_t>(k)];
  return dense;
}

void check_vector(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-11).margin(1e-12));
}

/// A program by every way of running it.
template <class F>
struct Everywhere {
  explicit Everywhere(const F& f)
      : run(eager(f)),
        opt0(compile(f, {.target = Target::c, .opt = 0})),
        opt3(compile(f, {.target = Target::c, .opt = 3})),
        clang(compile(f, {.target = Target::cpp, .opt = 3})) {}

  /// Its entries, against a dense matrix.
  template <class... X>
  void check(const Sparsity& s, const std::vector<double>& dense, const X&... x) const {
    check_vector(dense_of(s, run(x..., s)), dense);
    check_vector(dense_of(s, opt0(x..., s)), dense);
    check_vector(dense_of(s, opt3(x..., s)), dense);
    check_vector(dense_of(s, clang(x..., s)), dense);
  }

  core::EagerCall<F> run;
  Compiled<F> opt0, opt3, clang;
};

/// At points of several sizes; gives the sparsities.
template <class F>
std::vector<Sparsity> check_jacobian(const F& f, const std::vector<std::size_t>& sizes) {
  std::vector<Sparsity> all;
  const Everywhere entries(sparse_jacobian(f));
  for (std::size_t n : sizes) {
    INFO(n);
    const std::vector<double> x = point(n);
    all.push_back(jacobian_sparsity(f)(x));
    entries.check(all.back(), eager(jacobian(f))(x).data, x);
  }
  return all;
}
template <class F>
std::vector<Sparsity> check_hessian(const F& f, const std::vector<std::size_t>& sizes) {
  std::vector<Sparsity> all;
  const Everywhere entries(sparse_hessian(f));
  for (std::size_t n : sizes) {
    INFO(n);
    const std::vector<double> x = point(n);
    all.push_back(hessian_sparsity(f)(x));
    entries.check(all.back(), eager(hessian(f))(x).data, x);
  }
  return all;
}

/// Whether every entry of the matrix `values` is what the passes of a colouring say, with products taken
/// directly.
bool recovers(const Pattern& p, const ad::Colouring& c, const std::vector<double>& values) {
  std::vector<double> found(values.size(), std::nan(""));
  for (std::int64_t pass = 0; pass < c.forward + c.reverse; ++pass) {
    std::vector<double> product(static_cast<std::size_t>(std::max(p.rows, p.columns)), 0.0);
    for (std::int64_t i = 0; i < p.rows; ++i)
      for (std::int64_t k = p.row_start[static_cast<std::size_t>(i)];
           k < p.row_start[static_cast<std::size_t>(i + 1)]; ++k) {
        const std::int64_t j = p.column[static_cast<std::size_t>(k)];
        if (pass < c.forward && c.column_colour[static_cast<std::size_t>(j)] == pass)
          product[static_cast<std::size_t>(i)] += values[static_cast<std::size_t>(k)];
        if (pass >= c.forward && c.row_colour[static_cast<std::size_t>(i)] == pass - c.forward)
          product[static_cast<std::size_t>(j)] += values[static_cast<std::size_t>(k)];
      }
    for (std::int64_t k = c.pass_start[static_cast<std::size_t>(pass)];
         k < c.pass_start[static_cast<std::size_t>(pass + 1)]; ++k)
      found[static_cast<std::size_t>(c.entry[static_cast<std::size_t>(k)])] =
          product[static_cast<std::size_t>(c.element[static_cast<std::size_t>(k)])];
  }
  return found == values;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("sparse Jacobians against dense ones, and their colours", "[sparse]") {
  const std::vector<std::size_t> sizes{1, 2, 5, 12};
  const auto tridiagonals = check_jacobian(tridiagonal, sizes), arrows = check_jacobian(arrow, sizes),
             bands = check_jacobian(banded, sizes);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const auto n = static_cast<std::int64_t>(sizes[k]);
    const std::size_t entries = n == 1 ? 1 : 3 * sizes[k] - 2;
    INFO(n);
    CHECK(tridiagonals[k].column.size() == entries);
    CHECK(tridiagonals[k].forward == std::min<std::int64_t>(n, 3));
    CHECK(tridiagonals[k].reverse == 0);
    CHECK(arrows[k].column.size() == entries);
    CHECK(arrows[k].forward == std::min<std::int64_t>(n, 2));
    CHECK(arrows[k].reverse == (n > 2 ? 1 : 0));
    CHECK(bands[k].forward == std::min<std::int64_t>(n, 5));
  }
}

TEST_CASE("a dense row is taken by reverse mode", "[sparse]") {
  // A sum of everything, and the squares: one row and the diagonal.
  const auto f = [](A x) { return concat(fill(sum(x * x), 1), A(x * x)); };
  const Sparsity s = check_jacobian(f, {9})[0];
  CHECK(s.forward == 1);
  CHECK(s.reverse == 1);
  // A function to one element: one reverse pass. Of one: one forward pass.
  const Sparsity row = check_jacobian([](A x) { return fill(sum(x * x), 1); }, {9})[0];
  CHECK(row.forward == 0);
  CHECK(row.reverse == 1);
  const Sparsity column = check_jacobian([](A x) { return fill(x[0] * x[0], 9); }, {1})[0];
  CHECK(column.forward == 1);
  CHECK(column.reverse == 0);
}

TEST_CASE("blocks of bundle adjustment", "[sparse]") {
  const std::int64_t cameras = 3;
  const std::vector<std::int64_t> c{0, 0, 1, 1, 2, 2, 0}, p{0, 1, 1, 2, 2, 0, 2};
  const std::vector<double> x = point(3 * 3 + 2 * 3);
  const Sparsity s = jacobian_sparsity<0>(observations)(x, cameras, c, p);
  CHECK(s.column.size() == c.size() * (4 + 5));
  CHECK(s.forward + s.reverse <= 7);  // of 15 columns; a row has up to 5 entries
  const auto dense = eager(jacobian<0>(observations))(x, cameras, c, p).data;
  Everywhere(sparse_jacobian<0>(observations)).check(s, dense, x, cameras, c, p);
}

TEST_CASE("sparse Hessians against dense ones, and their colours", "[sparse]") {
  const std::vector<std::size_t> sizes{1, 2, 5, 12};
  const auto chains = check_hessian(rosenbrock, sizes), hubs = check_hessian(hub, sizes);
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    INFO(sizes[k]);
    CHECK(chains[k].forward ==
          (sizes[k] == 1 ? 0 : std::min<std::int64_t>(static_cast<std::int64_t>(sizes[k]), 3)));
    CHECK(chains[k].reverse == 0);
    CHECK(chains[k].column.size() == (sizes[k] == 1 ? 0 : 3 * sizes[k] - 2));
    CHECK(hubs[k].forward == (sizes[k] == 1 ? 1 : 2));  // a star
  }
  CHECK(check_hessian([](A x) { return sum(x * 2.0); }, {4})[0].forward == 0);
  // Through tensor operations: everything with everything.
  const Sparsity full =
      check_hessian([](A x) { return sum(matmul(outer(x, x), as_tensor(x))) * 0.5; }, {4})[0];
  CHECK(full.column.size() == 16);
}

TEST_CASE("colourings of random matrices recover every entry", "[sparse]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto n = static_cast<std::int64_t>(1 + random() % 14),
               m = static_cast<std::int64_t>(1 + random() % 14);
    const auto density = 1 + random() % 6;
    const auto pattern = [&](std::int64_t rows, std::int64_t columns) {
      Pattern p{rows, columns, {0}, {}};
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j)
          if (random() % 8 < density || (i == 0 && round % 3 == 0)) p.column.push_back(j);
        p.row_start.push_back(static_cast<std::int64_t>(p.column.size()));
      }
      return p;
    };
    const auto values = [](const Pattern& p, bool symmetric) {
      std::vector<double> v;
      for (std::int64_t i = 0; i < p.rows; ++i)
        for (std::int64_t k = p.row_start[static_cast<std::size_t>(i)];
             k < p.row_start[static_cast<std::size_t>(i + 1)]; ++k) {
          const std::int64_t j = p.column[static_cast<std::size_t>(k)];
          v.push_back(
              static_cast<double>(symmetric ? 100 * std::min(i, j) + std::max(i, j) + 1 : 100 * i + j + 1));
        }
      return v;
    };
    INFO(fmt::format("round {}: {} by {}", round, m, n));
    const Pattern p = pattern(m, n);
    const ad::Colouring c = ad::colour_jacobian(p);
    CHECK(recovers(p, c, values(p, false)));
    CHECK(2 * c.forward + 3 * c.reverse <= std::min(2 * n, 3 * m));  // not worse than one by one
    Pattern q = pattern(n, n);
    q = q.merged(q.transposed());
    const ad::Colouring star = ad::colour_hessian(q);
    CHECK(recovers(q, star, values(q, true)));
    CHECK(star.forward <= n);
  }
}

TEST_CASE("patterns of control flow and of every kind of operation", "[sparse]") {
  const std::vector<double> x{0.5, -1.5, 2.0};
  const auto columns = [&](const auto& f) { return jacobian_sparsity(f)(x).column; };
  using Columns = std::vector<std::int64_t>;
  // The branch that ran; the iterations that ran.
  const auto chooses = [](A a) {
    return fill(IF(
                    a[1] < 0.0, [&] { return a[0]; }, [&] { return a[1]; }),
                1);
  };
  CHECK(columns(chooses) == Columns{0});
  // Both sides of a selection; nothing through stop_gradient, comparisons, floor and integers.
  CHECK(columns([](A a) { return fill(select(a[1] < 0.0, a[0], a[2]), 1); }) == Columns{0, 2});
  CHECK(columns([](A a) { return fill(stop_gradient(a[0]) * a[1] + floor(a[2]), 1); }) == Columns{1});
  CHECK(columns([](A a) { return concat(a.slice(1, 3), a); }) == Columns{1, 2, 0, 1, 2});
  CHECK(columns([](A a) {
          const auto m = outer(a, A(a * 0.0 + 1.0));
          return as_array(matmul(m, as_tensor(a)));
        }) == Columns{0, 1, 2, 0, 1, 2, 0, 1, 2});
  CHECK(columns([](A a) { return as_array(outer(a.slice(0, 2), a).row(1)); }) == Columns{0, 1, 1, 1, 2});
  CHECK(columns([](A a) {
          return fill(fixpoint([](D t, D s) { return 0.5 * t + s; }, 0.0, a[1] * a[2]), 1);
        }) == Columns{1, 2});
  CHECK(columns([](A a) { return vmap(sig<double(double)>([](D t) { return t * t; }))(a); }) ==
        Columns{0, 1, 2});
}

TEST_CASE("sparse entries can be differentiated", "[sparse]") {
  const Sparsity s = jacobian_sparsity(tridiagonal)(point(4));
  const auto f = [](A x, const SparsityOf<I, Rep<Array<std::int64_t>>>& p) {
    return sum(sparse_jacobian(tridiagonal)(x, p) * x[1]);
  };
  const auto dense = [](A x) { return sum(jacobian(tridiagonal)(x)) * x[1]; };
  const std::vector<double> x = point(4), expected = eager(grad(dense))(x);
  check_vector(eager(grad<0>(f))(x, s), expected);
  check_vector(compile(grad<0>(f), {.target = Target::c, .opt = 0})(x, s), expected);
  check_vector(compile(grad<0>(f), {.target = Target::c})(x, s), expected);
}

TEST_CASE("a large sparse Jacobian", "[sparse]") {
  const std::size_t n = 10'000;
  const std::vector<double> x = point(n);
  const Sparsity s = jacobian_sparsity(tridiagonal)(x);
  CHECK(s.forward == 3);
  const auto values = compile(sparse_jacobian(tridiagonal), {.target = Target::cpp})(x, s);
  for (std::size_t i = 1; i + 1 < n; ++i) {
    const std::size_t k = static_cast<std::size_t>(s.row_start[i]);
    REQUIRE(s.row_start[i + 1] - s.row_start[i] == 3);
    CHECK(values[k] == -1.0);
    CHECK(values[k + 1] == Approx(3 - 4 * x[i]));
    CHECK(values[k + 2] == -2.0);
  }
}

TEST_CASE("what sparse_jacobian refuses", "[sparse][errors]") {
  const Sparsity s = jacobian_sparsity(tridiagonal)(point(4));
  const std::string size = "sparse_jacobian: expected the argument of the pattern's size, got another";
  CHECK(error_of([&] { eager(sparse_jacobian(tridiagonal))(point(5), s); }).find(size) != std::string::npos);
  CHECK(error_of([&] {
          compile(sparse_jacobian(tridiagonal), {.target = Target::c})(point(5), s);
        }).find(size) != std::string::npos);
  CHECK(error_of([&] {
          jacobian_sparsity(rosenbrock)(point(4));
        }).find("sparsity: expected the result to be a floating array, got f64") != std::string::npos);
}
