// Matrices: products, decompositions and solvers, after PolyBench's loops. Dense matrices are tensors; those
// of cholesky and lu are arrays with indices i * n + j, as in many programs.
#include "kernels.hpp"
#include "reference/kernels.hpp"

namespace lantern::bench {
namespace {

Number gemm(Matrix a, Matrix b, Matrix c) {
  const Index m = c.dim(0), n = c.dim(1), depth = a.dim(1);
  FOR(0, m, [&](Index i) {
    FOR(0, n, [&](Index j) { c = c.set(i, j, 1.2 * c(i, j)); });
    FOR(0, depth,
        [&](Index k) { FOR(0, n, [&](Index j) { c = c.set(i, j, c(i, j) + 1.5 * a(i, k) * b(k, j)); }); });
  });
  return sum(c * c);
}

Number gemver(Matrix a, Vector u1, Vector v1, Vector u2, Vector v2, Vector y, Vector z) {
  const Index n = y.size();
  Vector x = fill(Number(0.0), n), w = x;
  FOR(0, n, [&](Index i) {
    FOR(0, n, [&](Index j) { a = a.set(i, j, a(i, j) + u1[i] * v1[j] + u2[i] * v2[j]); });
  });
  FOR(0, n, [&](Index i) { FOR(0, n, [&](Index j) { x = x.set(i, x[i] + 1.2 * a(j, i) * y[j]); }); });
  FOR(0, n, [&](Index i) { x = x.set(i, x[i] + z[i]); });
  FOR(0, n, [&](Index i) { FOR(0, n, [&](Index j) { w = w.set(i, w[i] + 1.5 * a(i, j) * x[j]); }); });
  return sum(w * w);
}

Number atax(Matrix a, Vector x) {
  const Index m = a.dim(0), n = a.dim(1);
  Vector y = fill(Number(0.0), n);
  FOR(0, m, [&](Index i) {
    const Number s = total(0, n, [&](Index j) { return a(i, j) * x[j]; });
    FOR(0, n, [&](Index j) { y = y.set(j, y[j] + a(i, j) * s); });
  });
  return sum(y * y);
}

Number mvt(Matrix a, Vector x1, Vector x2, Vector y1, Vector y2) {
  const Index n = x1.size();
  FOR(0, n, [&](Index i) { FOR(0, n, [&](Index j) { x1 = x1.set(i, x1[i] + a(i, j) * y1[j]); }); });
  FOR(0, n, [&](Index i) { FOR(0, n, [&](Index j) { x2 = x2.set(i, x2[i] + a(j, i) * y2[j]); }); });
  return sum(x1 * x1) + sum(x2 * x2);
}

Number syrk(Matrix a, Matrix c) {
  const Index n = a.dim(0), m = a.dim(1);
  FOR(0, n, [&](Index i) {
    FOR(0, i + 1, [&](Index j) { c = c.set(i, j, 1.2 * c(i, j)); });
    FOR(0, m, [&](Index k) {
      FOR(0, i + 1, [&](Index j) { c = c.set(i, j, c(i, j) + 1.5 * a(i, k) * a(j, k)); });
    });
  });
  return sum(c * c);
}

Number trmm(Matrix a, Matrix b) {
  const Index m = b.dim(0), n = b.dim(1);
  FOR(0, m, [&](Index i) {
    FOR(0, n, [&](Index j) {
      FOR(i + 1, m, [&](Index k) { b = b.set(i, j, b(i, j) + a(k, i) * b(k, j)); });
      b = b.set(i, j, 1.5 * b(i, j));
    });
  });
  return sum(b * b);
}

Number trisolv(Matrix l, Vector b) {
  const Index n = b.size();
  Vector x = fill(Number(0.0), n);
  FOR(0, n, [&](Index i) {
    x = x.set(i, b[i]);
    FOR(0, i, [&](Index j) { x = x.set(i, x[i] - l(i, j) * x[j]); });
    x = x.set(i, x[i] / l(i, i));
  });
  return sum(x * x);
}

Number cholesky(Vector a, Index n) {
  FOR(0, n, [&](Index i) {
    FOR(0, i, [&](Index j) {
      FOR(0, j, [&](Index k) { a = a.set(i * n + j, a[i * n + j] - a[i * n + k] * a[j * n + k]); });
      a = a.set(i * n + j, a[i * n + j] / a[j * n + j]);
    });
    FOR(0, i, [&](Index k) { a = a.set(i * n + i, a[i * n + i] - a[i * n + k] * a[i * n + k]); });
    a = a.set(i * n + i, sqrt(a[i * n + i]));
  });
  return total(0, n, [&](Index i) {
    return total(0, i + 1, [&](Index j) { return a[i * n + j] * a[i * n + j] * a[i * n + j]; });
  });
}

Number lu(Vector a, Index n) {
  FOR(0, n, [&](Index i) {
    FOR(0, i, [&](Index j) {
      FOR(0, j, [&](Index k) { a = a.set(i * n + j, a[i * n + j] - a[i * n + k] * a[k * n + j]); });
      a = a.set(i * n + j, a[i * n + j] / a[j * n + j]);
    });
    FOR(i, n, [&](Index j) {
      FOR(0, i, [&](Index k) { a = a.set(i * n + j, a[i * n + j] - a[i * n + k] * a[k * n + j]); });
    });
  });
  return sum(a * a);
}

/// Rows of a sparse matrix lie one after another, row i from start[i] on.
Number sparse_product(Indices start, Indices column, Vector value, Vector x) {
  return total(0, start.size() - 1, [&](Index i) {
    const Number y = total(start[i], start[i + 1], [&](Index k) { return value[k] * x[column[k]]; });
    return y * y;
  });
}

/// Thomas's algorithm.
Number tridiagonal(Vector lower, Vector middle, Vector upper, Vector right) {
  const Index n = middle.size();
  Vector c = fill(Number(0.0), n), d = c, x = c;
  c = c.set(0, upper[0] / middle[0]);
  d = d.set(0, right[0] / middle[0]);
  FOR(1, n, [&](Index i) {
    const Number pivot = middle[i] - lower[i] * c[i - 1];
    c = c.set(i, upper[i] / pivot);
    d = d.set(i, (right[i] - lower[i] * d[i - 1]) / pivot);
  });
  x = x.set(n - 1, d[n - 1]);
  FOR(0, n - 1, [&](Index k) {
    const Index i = n - 2 - k;
    x = x.set(i, d[i] - c[i] * x[i + 1]);
  });
  return sum(x * x);
}

}  // namespace

std::vector<Kernel> linear_kernels(const Sizes& of) {
  namespace plain = reference;
  std::vector<Kernel> all;
  {
    const std::int64_t m = of(40, 200, 800), n = of(44, 220, 840), depth = of(48, 240, 880);
    all.push_back(kernel(
        "gemm", by(m, n, depth), gemm, [=](auto... a) { return plain::gemm(m, n, depth, a...); },
        uniform_grid({m, depth}), uniform_grid({depth, n}), uniform_grid({m, n})));
    const std::int64_t rows = of(40, 240, 800), columns = of(30, 200, 700);
    all.push_back(kernel(
        "syrk", by(rows, columns), syrk, [=](auto... a) { return plain::syrk(rows, columns, a...); },
        uniform_grid({rows, columns}), uniform_grid({rows, rows})));
    all.push_back(kernel(
        "trmm", by(columns, rows), trmm, [=](auto... a) { return plain::trmm(columns, rows, a...); },
        uniform_grid({columns, columns}, -0.1, 0.1), uniform_grid({columns, rows})));
  }
  {
    const std::int64_t n = of(60, 600, 3'000);
    all.push_back(kernel(
        "gemver", by(n), gemver, [=](auto... a) { return plain::gemver(n, a...); }, uniform_grid({n, n}),
        uniform(n), uniform(n), uniform(n), uniform(n), uniform(n), uniform(n)));
    const std::int64_t rows = n + 10;
    all.push_back(kernel(
        "atax", by(rows, n), atax, [=](auto... a) { return plain::atax(rows, n, a...); },
        uniform_grid({rows, n}), uniform(n)));
    all.push_back(kernel(
        "mvt", by(n), mvt, [=](auto... a) { return plain::mvt(n, a...); }, uniform_grid({n, n}), uniform(n),
        uniform(n), uniform(n), uniform(n)));
  }
  {
    const std::int64_t n = of(100, 1000, 4'000), small = of(40, 300, 1'000);
    all.push_back(kernel(
        "trisolv", by(n), trisolv, [=](auto... a) { return plain::trisolv(n, a...); },
        Grid(dominant(n), {n, n}), uniform(n)));
    const auto with_size = [](auto f) {
      return [=](const double* a, std::int64_t size) { return f(size, a); };
    };
    all.push_back(
        kernel("cholesky", by(small), cholesky, with_size(plain::cholesky), dominant(small), small));
    all.push_back(kernel("lu", by(small), lu, with_size(plain::lu), dominant(small), small));
  }
  {
    const std::int64_t n = of(2'000, 20'000, 1'000'000), each = 20;
    Whole start;
    for (std::int64_t i = 0; i <= n; ++i) start.push_back(each * i);
    all.push_back(kernel(
        "sparse_product", by(n, each), sparse_product,
        [=](auto... a) { return plain::sparse_product(n, a...); }, start, places(n * each, n),
        uniform(n * each), uniform(n)));
    const std::int64_t length = of(5'000, 100'000, 1'000'000);
    all.push_back(kernel(
        "tridiagonal", by(length), tridiagonal, [=](auto... a) { return plain::tridiagonal(length, a...); },
        uniform(length), uniform(length, 2.5, 3.5), uniform(length), uniform(length)));
  }
  return all;
}

}  // namespace lantern::bench
