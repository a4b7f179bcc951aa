#include <cmath>
#include <vector>

#include "kernels.hpp"

namespace lantern::bench::reference {
namespace {

using Values = std::vector<double>;

double sum_of_squares(const Values& a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return sum;
}

}  // namespace

double gemm(Size m, Size n, Size depth, const double* a, const double* b, const double* c) {
  Values r(c, c + m * n);
  for (Size i = 0; i < m; ++i) {
    for (Size j = 0; j < n; ++j) r[i * n + j] *= 1.2;
    for (Size k = 0; k < depth; ++k)
      for (Size j = 0; j < n; ++j) r[i * n + j] += 1.5 * a[i * depth + k] * b[k * n + j];
  }
  return sum_of_squares(r);
}

double gemver(Size n, const double* a, const double* u1, const double* v1, const double* u2, const double* v2,
              const double* y, const double* z) {
  Values r(a, a + n * n), x(n), w(n);
  for (Size i = 0; i < n; ++i)
    for (Size j = 0; j < n; ++j) r[i * n + j] += u1[i] * v1[j] + u2[i] * v2[j];
  for (Size i = 0; i < n; ++i)
    for (Size j = 0; j < n; ++j) x[i] += 1.2 * r[j * n + i] * y[j];
  for (Size i = 0; i < n; ++i) x[i] += z[i];
  for (Size i = 0; i < n; ++i)
    for (Size j = 0; j < n; ++j) w[i] += 1.5 * r[i * n + j] * x[j];
  return sum_of_squares(w);
}

double atax(Size m, Size n, const double* a, const double* x) {
  Values y(n);
  for (Size i = 0; i < m; ++i) {
    double s = 0;
    for (Size j = 0; j < n; ++j) s += a[i * n + j] * x[j];
    for (Size j = 0; j < n; ++j) y[j] += a[i * n + j] * s;
  }
  return sum_of_squares(y);
}

double mvt(Size n, const double* a, const double* x1, const double* x2, const double* y1, const double* y2) {
  Values r1(x1, x1 + n), r2(x2, x2 + n);
  for (Size i = 0; i < n; ++i)
    for (Size j = 0; j < n; ++j) r1[i] += a[i * n + j] * y1[j];
  for (Size i = 0; i < n; ++i)
    for (Size j = 0; j < n; ++j) r2[i] += a[j * n + i] * y2[j];
  return sum_of_squares(r1) + sum_of_squares(r2);
}

double syrk(Size n, Size m, const double* a, const double* c) {
  Values r(c, c + n * n);
  for (Size i = 0; i < n; ++i) {
    for (Size j = 0; j <= i; ++j) r[i * n + j] *= 1.2;
    for (Size k = 0; k < m; ++k)
      for (Size j = 0; j <= i; ++j) r[i * n + j] += 1.5 * a[i * m + k] * a[j * m + k];
  }
  return sum_of_squares(r);
}

double trmm(Size m, Size n, const double* a, const double* b) {
  Values r(b, b + m * n);
  for (Size i = 0; i < m; ++i)
    for (Size j = 0; j < n; ++j) {
      for (Size k = i + 1; k < m; ++k) r[i * n + j] += a[k * m + i] * r[k * n + j];
      r[i * n + j] *= 1.5;
    }
  return sum_of_squares(r);
}

double trisolv(Size n, const double* l, const double* b) {
  Values x(n);
  for (Size i = 0; i < n; ++i) {
    x[i] = b[i];
    for (Size j = 0; j < i; ++j) x[i] -= l[i * n + j] * x[j];
    x[i] /= l[i * n + i];
  }
  return sum_of_squares(x);
}

double cholesky(Size n, const double* a) {
  Values r(a, a + n * n);
  for (Size i = 0; i < n; ++i) {
    for (Size j = 0; j < i; ++j) {
      for (Size k = 0; k < j; ++k) r[i * n + j] -= r[i * n + k] * r[j * n + k];
      r[i * n + j] /= r[j * n + j];
    }
    for (Size k = 0; k < i; ++k) r[i * n + i] -= r[i * n + k] * r[i * n + k];
    r[i * n + i] = std::sqrt(r[i * n + i]);
  }
  double sum = 0;
  for (Size i = 0; i < n; ++i)
    for (Size j = 0; j <= i; ++j) sum += r[i * n + j] * r[i * n + j] * r[i * n + j];
  return sum;
}

double lu(Size n, const double* a) {
  Values r(a, a + n * n);
  for (Size i = 0; i < n; ++i) {
    for (Size j = 0; j < i; ++j) {
      for (Size k = 0; k < j; ++k) r[i * n + j] -= r[i * n + k] * r[k * n + j];
      r[i * n + j] /= r[j * n + j];
    }
    for (Size j = i; j < n; ++j)
      for (Size k = 0; k < i; ++k) r[i * n + j] -= r[i * n + k] * r[k * n + j];
  }
  return sum_of_squares(r);
}

double sparse_product(Size rows, const Size* start, const Size* column, const double* value,
                      const double* x) {
  double sum = 0;
  for (Size i = 0; i < rows; ++i) {
    double y = 0;
    for (Size k = start[i]; k < start[i + 1]; ++k) y += value[k] * x[column[k]];
    sum += y * y;
  }
  return sum;
}

double tridiagonal(Size n, const double* lower, const double* middle, const double* upper,
                   const double* right) {
  Values c(n), d(n), x(n);
  c[0] = upper[0] / middle[0];
  d[0] = right[0] / middle[0];
  for (Size i = 1; i < n; ++i) {
    const double pivot = middle[i] - lower[i] * c[i - 1];
    c[i] = upper[i] / pivot;
    d[i] = (right[i] - lower[i] * d[i - 1]) / pivot;
  }
  x[n - 1] = d[n - 1];
  for (Size i = n - 2; i >= 0; --i) x[i] = d[i] - c[i] * x[i + 1];
  return sum_of_squares(x);
}

}  // namespace lantern::bench::reference
