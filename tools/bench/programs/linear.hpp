// Matrix-vector products, solvers and recurrences.
#pragma once

#include "types.hpp"

namespace lantern::bench::programs {

/// Two matrix-vector products in one nest.
template <class T>
Number<T> gesummv(Input<T> a, Input<T> b, Input<T> x, Index<T> n) {
  Array<T> y = T::zeros(n);
  for (Index<T> i = 0; i < n; ++i) {
    Number<T> s = 0.0, t = 0.0;
    for (Index<T> j = 0; j < n; ++j) {
      s += a[i * n + j] * x[j];
      t += b[i * n + j] * x[j];
    }
    y[i] = 1.5 * s + 1.2 * t;
  }
  return sum_of_squares<T>(y, n);
}

/// A matrix and its transpose times a vector each, in one nest.
template <class T>
Number<T> bicg(Input<T> a, Input<T> p, Input<T> r, Index<T> n) {
  Array<T> s = T::zeros(n), q = T::zeros(n);
  for (Index<T> i = 0; i < n; ++i)
    for (Index<T> j = 0; j < n; ++j) {
      s[j] = s[j] + r[i] * a[i * n + j];
      q[i] = q[i] + a[i * n + j] * p[j];
    }
  return sum_of_squares<T>(s, n) + sum_of_squares<T>(q, n);
}

/// A times the transpose of B, by inner products of rows.
template <class T>
Number<T> gemm_transposed(Input<T> a, Input<T> b, Index<T> n) {
  Number<T> sum = 0.0;
  for (Index<T> j = 0; j < n; ++j)
    for (Index<T> i = 0; i < n; ++i) {
      Number<T> c = 0.0;
      for (Index<T> k = 0; k < n; ++k) c += a[i * n + k] * b[j * n + k];
      sum += c * c * c;
    }
  return sum;
}

/// A symmetric matrix, of which the lower triangle counts, times another.
template <class T>
Number<T> symm(Input<T> a, Input<T> b, Index<T> m, Index<T> n) {
  Array<T> c = T::zeros(m * n);
  for (Index<T> i = 0; i < m; ++i)
    for (Index<T> j = 0; j < n; ++j) {
      Number<T> s = 0.0;
      for (Index<T> k = 0; k < i; ++k) {
        c[k * n + j] = c[k * n + j] + 1.5 * b[i * n + j] * a[i * m + k];
        s += b[k * n + j] * a[i * m + k];
      }
      c[i * n + j] = c[i * n + j] + 1.5 * b[i * n + j] * a[i * m + i] + 1.5 * s;
    }
  return sum_of_squares<T>(c, m * n);
}

/// Each row of a volume times a matrix.
template <class T>
Number<T> doitgen(Input<T> a, Input<T> c, Index<T> r, Index<T> p) {
  Number<T> all = 0.0;
  for (Index<T> i = 0; i < r * r; ++i)
    for (Index<T> q = 0; q < p; ++q) {
      Number<T> s = 0.0;
      for (Index<T> k = 0; k < p; ++k) s += a[i * p + k] * c[k * p + q];
      all += s * s;
    }
  return all;
}

/// The sum of squares of the covariances of a table's columns.
template <class T>
Number<T> covariance(Input<T> data, Index<T> rows, Index<T> columns) {
  Array<T> mean = T::zeros(columns), centred = T::zeros(rows * columns);
  for (Index<T> j = 0; j < columns; ++j) {
    for (Index<T> i = 0; i < rows; ++i) mean[j] = mean[j] + data[i * columns + j];
    mean[j] = mean[j] / T::number(rows);
  }
  for (Index<T> i = 0; i < rows; ++i)
    for (Index<T> j = 0; j < columns; ++j) centred[i * columns + j] = data[i * columns + j] - mean[j];
  Number<T> sum = 0.0;
  for (Index<T> i = 0; i < columns; ++i)
    for (Index<T> j = i; j < columns; ++j) {
      Number<T> c = 0.0;
      for (Index<T> k = 0; k < rows; ++k) c += centred[k * columns + i] * centred[k * columns + j];
      c = c / (T::number(rows) - 1.0);
      sum += c * c;
    }
  return sum;
}

/// Modified Gram-Schmidt: the columns of A become orthogonal, and R is summed up.
template <class T>
Number<T> gram_schmidt(Input<T> a, Index<T> m, Index<T> n) {
  Array<T> q = T::copy(a, m * n);
  Number<T> sum = 0.0;
  for (Index<T> k = 0; k < n; ++k) {
    Number<T> squares = 0.0;
    for (Index<T> i = 0; i < m; ++i) squares += q[i * n + k] * q[i * n + k];
    const Number<T> length = sqrt(squares);
    sum += length;
    for (Index<T> i = 0; i < m; ++i) q[i * n + k] = q[i * n + k] / length;
    for (Index<T> j = k + 1; j < n; ++j) {
      Number<T> r = 0.0;
      for (Index<T> i = 0; i < m; ++i) r += q[i * n + k] * q[i * n + j];
      sum += r * r;
      for (Index<T> i = 0; i < m; ++i) q[i * n + j] = q[i * n + j] - q[i * n + k] * r;
    }
  }
  return sum;
}

/// A Toeplitz system by Levinson's and Durbin's recursion.
template <class T>
Number<T> durbin(Input<T> r, Index<T> n) {
  Array<T> y = T::zeros(n), z = T::zeros(n);
  y[0] = 0.0 - r[0];
  Number<T> beta = 1.0, alpha = 0.0 - r[0];
  for (Index<T> k = 1; k < n; ++k) {
    beta = (1.0 - alpha * alpha) * beta;
    Number<T> s = 0.0;
    for (Index<T> i = 0; i < k; ++i) s += r[k - i - 1] * y[i];
    alpha = 0.0 - (r[k] + s) / beta;
    for (Index<T> i = 0; i < k; ++i) z[i] = y[i] + alpha * y[k - i - 1];
    for (Index<T> i = 0; i < k; ++i) y[i] = z[i];
    y[k] = alpha;
  }
  return sum_of_squares<T>(y, n);
}

/// Implicit steps of heat in a rod: a tridiagonal system at each.
template <class T>
Number<T> implicit_heat(Input<T> start, Input<T> rate, Index<T> n, Index<T> steps) {
  Array<T> u = T::copy(start, n), c = T::zeros(n);
  for (Index<T> t = 0; t < steps; ++t) {
    for (Index<T> i = 1; i < n; ++i) {
      const Number<T> pivot = 1.0 + 2.0 * rate[i] + rate[i] * c[i - 1];
      c[i] = (0.0 - rate[i]) / pivot;
      u[i] = (u[i] + rate[i] * u[i - 1]) / pivot;
    }
    for (Index<T> k = 0; k < n - 1; ++k) {
      const Index<T> i = n - 2 - k;
      u[i] = u[i] - c[i] * u[i + 1];
    }
  }
  return sum_of_squares<T>(u, n);
}

/// Sweeps of Gauss-Seidel over a dense system, in place.
template <class T>
Number<T> gauss_seidel(Input<T> a, Input<T> b, Index<T> n, Index<T> sweeps) {
  Array<T> x = T::zeros(n);
  for (Index<T> t = 0; t < sweeps; ++t)
    for (Index<T> i = 0; i < n; ++i) {
      Number<T> s = b[i];
      for (Index<T> j = 0; j < n; ++j)
        if (j != i) s -= a[i * n + j] * x[j];
      x[i] = s / a[i * n + i];
    }
  return sum_of_squares<T>(x, n);
}

/// Products of 3 x 3 matrices, one after another.
template <class T>
Number<T> rotations(Input<T> a, Index<T> n) {
  Array<T> r = T::zeros(9), next = T::zeros(9);
  for (Index<T> i = 0; i < 3; ++i) r[i * 3 + i] = 1.0;
  Number<T> sum = 0.0;
  for (Index<T> t = 0; t < n; ++t) {
    for (Index<T> i = 0; i < 3; ++i)
      for (Index<T> j = 0; j < 3; ++j) {
        Number<T> s = 0.0;
        for (Index<T> k = 0; k < 3; ++k) s += r[i * 3 + k] * a[t * 9 + k * 3 + j];
        next[i * 3 + j] = s;
      }
    for (Index<T> i = 0; i < 9; ++i) r[i] = next[i];
    sum += r[0] * r[4];
  }
  return sum;
}

/// A signal through a filter with `taps` weights.
template <class T>
Number<T> moving_filter(Input<T> x, Input<T> h, Index<T> n, Index<T> taps) {
  Number<T> sum = 0.0;
  for (Index<T> i = 0; i < n - taps + 1; ++i) {
    Number<T> y = 0.0;
    for (Index<T> k = 0; k < taps; ++k) y += h[k] * x[i + taps - 1 - k];
    sum += y * y;
  }
  return sum;
}

/// A signal through a filter with feedback of second order.
template <class T>
Number<T> feedback_filter(Input<T> x, Input<T> h, Index<T> n) {
  Array<T> y = T::zeros(n);
  for (Index<T> i = 2; i < n; ++i) y[i] = h[0] * x[i] + h[1] * x[i - 1] + h[2] * y[i - 1] + h[3] * y[i - 2];
  return sum_of_squares<T>(y, n);
}

}  // namespace lantern::bench::programs
