#include <algorithm>
#include <utility>
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

double jacobi_1d(Size n, Size steps, const double* start) {
  Values a(start, start + n), b = a;
  for (Size t = 0; t < steps; ++t) {
    for (Size i = 1; i < n - 1; ++i) b[i] = 0.33333 * (a[i - 1] + a[i] + a[i + 1]);
    for (Size i = 1; i < n - 1; ++i) a[i] = 0.33333 * (b[i - 1] + b[i] + b[i + 1]);
  }
  return sum_of_squares(a);
}

double jacobi_2d(Size n, Size steps, const double* start) {
  Values a(start, start + n * n), b = a;
  const auto step = [n](const Values& from, Values& to) {
    for (Size i = 1; i < n - 1; ++i)
      for (Size j = 1; j < n - 1; ++j)
        to[i * n + j] = 0.2 * (from[i * n + j] + from[i * n + j - 1] + from[i * n + j + 1] +
                               from[(i + 1) * n + j] + from[(i - 1) * n + j]);
  };
  for (Size t = 0; t < steps; ++t) {
    step(a, b);
    step(b, a);
  }
  return sum_of_squares(a);
}

double heat_3d(Size n, Size steps, const double* start) {
  Values a(start, start + n * n * n), b = a;
  const auto step = [n](const Values& from, Values& to) {
    for (Size i = 1; i < n - 1; ++i)
      for (Size j = 1; j < n - 1; ++j)
        for (Size k = 1; k < n - 1; ++k) {
          const Size at = (i * n + j) * n + k;
          to[at] = 0.125 * (from[at + n * n] - 2.0 * from[at] + from[at - n * n]) +
                   0.125 * (from[at + n] - 2.0 * from[at] + from[at - n]) +
                   0.125 * (from[at + 1] - 2.0 * from[at] + from[at - 1]) + from[at];
        }
  };
  for (Size t = 0; t < steps; ++t) {
    step(a, b);
    step(b, a);
  }
  return sum_of_squares(a);
}

double seidel_2d(Size n, Size steps, const double* start) {
  Values a(start, start + n * n);
  for (Size t = 0; t < steps; ++t)
    for (Size i = 1; i < n - 1; ++i)
      for (Size j = 1; j < n - 1; ++j)
        a[i * n + j] = (a[(i - 1) * n + j - 1] + a[(i - 1) * n + j] + a[(i - 1) * n + j + 1] +
                        a[i * n + j - 1] + a[i * n + j] + a[i * n + j + 1] + a[(i + 1) * n + j - 1] +
                        a[(i + 1) * n + j] + a[(i + 1) * n + j + 1]) /
                       9.0;
  return sum_of_squares(a);
}

double fdtd_2d(Size m, Size n, Size steps, const double* ex0, const double* ey0, const double* hz0,
               const double* source) {
  Values ex(ex0, ex0 + m * n), ey(ey0, ey0 + m * n), hz(hz0, hz0 + m * n);
  for (Size t = 0; t < steps; ++t) {
    for (Size j = 0; j < n; ++j) ey[j] = source[t];
    for (Size i = 1; i < m; ++i)
      for (Size j = 0; j < n; ++j) ey[i * n + j] -= 0.5 * (hz[i * n + j] - hz[(i - 1) * n + j]);
    for (Size i = 0; i < m; ++i)
      for (Size j = 1; j < n; ++j) ex[i * n + j] -= 0.5 * (hz[i * n + j] - hz[i * n + j - 1]);
    for (Size i = 0; i < m - 1; ++i)
      for (Size j = 0; j < n - 1; ++j)
        hz[i * n + j] -= 0.7 * (ex[i * n + j + 1] - ex[i * n + j] + ey[(i + 1) * n + j] - ey[i * n + j]);
  }
  return sum_of_squares(hz);
}

double periodic(Size n, Size steps, const double* start) {
  Values u(start, start + n * n), next(n * n);
  for (Size t = 0; t < steps; ++t) {
    for (Size i = 0; i < n; ++i) {
      const Size above = i == 0 ? n - 1 : i - 1, below = i == n - 1 ? 0 : i + 1;
      for (Size j = 0; j < n; ++j) {
        const Size left = j == 0 ? n - 1 : j - 1, right = j == n - 1 ? 0 : j + 1;
        const double v = u[i * n + j];
        const double spread =
            u[above * n + j] + u[below * n + j] + u[i * n + left] + u[i * n + right] - 4.0 * v;
        next[i * n + j] = v + 0.1 * spread + 0.05 * (v - v * v * v);
      }
    }
    u.swap(next);
  }
  return sum_of_squares(u);
}

double clamped(Size n, Size steps, const double* start, const double* conductivity) {
  Values u(start, start + n * n), next(n * n);
  for (Size t = 0; t < steps; ++t) {
    for (Size i = 0; i < n; ++i)
      for (Size j = 0; j < n; ++j) {
        const Size above = std::max<Size>(i - 1, 0), below = std::min(i + 1, n - 1);
        const Size left = std::max<Size>(j - 1, 0), right = std::min(j + 1, n - 1);
        const double v = u[i * n + j];
        const double spread =
            u[above * n + j] + u[below * n + j] + u[i * n + left] + u[i * n + right] - 4.0 * v;
        next[i * n + j] = v + conductivity[i * n + j] * spread;
      }
    u.swap(next);
  }
  return sum_of_squares(u);
}

double wave(Size n, Size steps, const double* start, const double* speed) {
  Values before(start, start + n * n), now = before;
  for (Size t = 0; t < steps; ++t) {
    for (Size i = 1; i < n - 1; ++i)
      for (Size j = 1; j < n - 1; ++j) {
        const double v = now[i * n + j], c = speed[i * n + j];
        const double spread =
            now[(i - 1) * n + j] + now[(i + 1) * n + j] + now[i * n + j - 1] + now[i * n + j + 1] - 4.0 * v;
        before[i * n + j] = 2.0 * v - before[i * n + j] + c * c * spread;
      }
    before.swap(now);
  }
  return sum_of_squares(now);
}

}  // namespace lantern::bench::reference
