// What the derivatives of eigenvectors and singular vectors are made of where values are equal.
#include "lantern/runtime/linalg/groups.hpp"

#include "lantern/runtime/linalg/kernels.h"

namespace lantern::linalg {

namespace {

template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();

void eigh(Size n, double* w, double* a) { linalg_eigh_f64(1, n, w, a); }
void eigh(Size n, float* w, float* a) { linalg_eigh_f32(1, n, w, a); }

/// Whether a symmetric k x k part is a multiple of 1.
template <class T>
bool is_multiple_of_one(Size k, Block<const T> x) {
  T size = 0, off = 0;
  for (Size i = 0; i < k; ++i)
    for (Size j = 0; j < k; ++j) {
      size = std::max(size, std::abs(x(i, j)));
      off = std::max(off, std::abs(x(i, j) - (i == j ? x(0, 0) : 0)));
    }
  return off <= negligible<T>() * size;
}

/// An orthogonal matrix for a group of k, in which the part of `along` is diagonal; else a reflection in a
/// vector of square roots, in whose basis no matrix that a user would write down has a diagonal of one number
/// by chance.
template <class T>
std::vector<T> basis(Size k, Block<const T> along) {
  std::vector<T> q(count(k * k)), values(count(k));
  if (!is_multiple_of_one(k, along)) {
    for (Size i = 0; i < k; ++i)
      for (Size j = 0; j < k; ++j) q[count(i * k + j)] = (along(i, j) + along(j, i)) / 2;
    eigh(k, values.data(), q.data());
    return q;
  }
  T square = 0;
  for (Size i = 0; i < k; ++i)
    values[count(i)] = std::sqrt(T(2) + static_cast<T>(i * i)), square += 2 + static_cast<T>(i * i);
  for (Size i = 0; i < k; ++i)
    for (Size j = 0; j < k; ++j)
      q[count(i * k + j)] = (i == j ? 1 : 0) - 2 * values[count(i)] * values[count(j)] / square;
  return q;
}

/// Columns from .. from + k of v, rows x n, times q.
template <class T>
void turn_columns(Size rows, Size n, Size from, Size k, const std::vector<T>& q, T* v) {
  std::vector<T> before(count(rows * k));
  for (Size i = 0; i < rows; ++i) std::copy_n(v + i * n + from, k, before.data() + i * k);
  gemm<T>(1, false, {before.data(), rows, k, k}, false, {q.data(), k, k, k}, 0, {v + from, rows, k, n});
}
template <class T>
void turn_rows(Size n, Size from, Size k, const std::vector<T>& q, T* vt) {
  std::vector<T> before(vt + from * n, vt + (from + k) * n);
  gemm<T>(1, true, {q.data(), k, k, k}, false, {before.data(), k, n, n}, 0, {vt + from * n, k, n, n});
}

template <class T>
void turn(Size batch, Size n, const T* w, const T* along, T* v) {
  for (Size b = 0; b < batch; ++b, w += n, along += n * n, v += n * n)
    for (const auto& [from, to] : groups(n, w)) {
      if (to - from == 1) continue;
      const Block<const T> part{along + from * n + from, to - from, to - from, n};
      turn_columns(n, n, from, to - from, basis(to - from, part), v);
    }
}

template <class T>
void turn_both(Size batch, Size m, Size n, Size k, const T* s, const T* along, T* u, T* vt) {
  for (Size b = 0; b < batch; ++b, s += k, along += k * k, u += m * k, vt += k * n)
    for (const auto& [from, to] : groups(k, s)) {
      if (to - from == 1) continue;
      const std::vector<T> q =
          basis(to - from, Block<const T>{along + from * k + from, to - from, to - from, k});
      turn_columns(m, k, from, to - from, q, u);
      turn_rows(n, from, to - from, q, vt);
    }
}

/// What values that the matrix's rounding moves are right to, where less is not to be had.
template <class T>
T coarse() {
  return std::sqrt(negligible<T>());
}

/// a / b, where b may count as 0.
template <class T>
T over(T a, T b, bool zero, bool strict, T size) {
  if (!zero) return a / b;
  return strict && !(std::abs(a) <= negligible<T>() * size) ? nan<T> : 0;
}

/// a / b, where b is the difference of two values, of which the largest is `most`: one group, or two. What rounding
/// leaves of a in a narrow gap between two groups is 0; more is too inexact a quotient where `strict`.
template <class T>
T over_gap(T a, T b, bool one_group, bool strict, T size, T most) {
  if (one_group) return over(a, b, true, strict, size);
  if (!strict || std::abs(b) > least_gap<T>() * most) return a / b;
  return std::abs(a) * most <= coarse<T>() * size * std::abs(b) ? 0 : nan<T>;
}

template <class T>
void quotient(Size batch, Size m, Size n, Size kind, bool strict, const T* w, const T* size, T* x) {
  std::vector<Size> group(count(n));
  for (Size b = 0; b < batch; ++b, w += n, x += m * n, ++size) {
    Size number = 0;
    for (const auto& [from, to] : groups(n, w)) {
      std::fill(group.begin() + from, group.begin() + to, number);
      ++number;
    }
    const T most = largest(n, w), least = least_gap<T>() * most;
    for (Size i = 0; i < m; ++i)
      for (Size j = 0; j < n; ++j) {
        T& element = x[i * n + j];
        if (kind == 0)
          element = i == j ? 0
                           : over_gap(element, w[j] - w[i], group[count(i)] == group[count(j)], strict, *size, most);
        else
          element = over(element, kind == 1 ? w[i] + w[j] : w[j],
                         kind == 1 ? std::abs(w[i] + w[j]) <= least : std::abs(w[j]) <= least, true, *size);
      }
  }
}

template <class T>
void inside_groups(Size batch, Size n, bool several, const T* w, T* x) {
  for (Size b = 0; b < batch; ++b, w += n, x += n * n)
    for (const auto& [from, to] : groups(n, w))
      for (Size i = from; i < to; ++i)
        for (Size j = 0; j < n; ++j)
          if (j < from || j >= to || (several && to - from == 1)) x[i * n + j] = 0;
}

/// The part of one group, w.
template <class T>
void level(Size k, const T* w, const T* g, T size, Block<T> x) {
  // Where the values differ, slopes of a function such as the logarithm do, by about their relative difference.
  const T spread = std::abs(w[k - 1] - w[0]), least = std::min(std::abs(w[0]), std::abs(w[k - 1]));
  const T near = size * std::min(coarse<T>(), std::max(2 * negligible<T>(), 4 * spread / least));
  T mean = 0, mean_x = 0, square = 0, mixed = 0;
  for (Size i = 0; i < k; ++i) mean += g[i] / static_cast<T>(k), mean_x += x(i, i) / static_cast<T>(k);
  for (Size i = 0; i < k; ++i) {
    square += (x(i, i) - mean_x) * (x(i, i) - mean_x);
    mixed += (x(i, i) - mean_x) * (g[i] - mean);
  }
  const bool one = is_multiple_of_one(k, fixed(x));
  const T slope = one || square == 0 ? 0 : mixed / square;
  bool known = true;
  for (Size i = 0; i < k; ++i) known = known && std::abs(g[i] - mean - slope * (x(i, i) - mean_x)) <= near;
  for (Size i = 0; i < k; ++i)
    for (Size j = 0; j < k; ++j) {
      const T symmetric = (x(i, j) + x(j, i)) / 2;
      if (j > i) x(j, i) = symmetric;
      if (j >= i) x(i, j) = symmetric;
    }
  for (Size i = 0; i < k; ++i)
    for (Size j = 0; j < k; ++j) {
      const T own =
          one ? (i == j ? g[i] : 0) : slope * (x(i, j) - (i == j ? mean_x : 0)) + (i == j ? mean : 0);
      x(i, j) = known ? own : nan<T>;
    }
}

template <class T>
void level(Size batch, Size n, bool singular, bool square, const T* w, const T* g, const T* size, T* x) {
  for (Size b = 0; b < batch; ++b, w += n, g += n, ++size, x += n * n) {
    const T most = largest(n, w);
    inside_groups(1, n, false, w, x);
    for (const auto& [from, to] : groups(n, w)) {
      const Block<T> part{x + from * n + from, to - from, to - from, n};
      const T near = most > 0 ? std::max(largest(n, g), *size / most) : largest(n, g);
      const bool one = to - from == 1;
      if (singular && !(square && one) && std::abs(w[from]) <= least_gap<T>() * most) {
        const bool none = largest(to - from, g + from) <= negligible<T>() * near;
        for (Size i = 0; i < to - from; ++i)
          for (Size j = 0; j < to - from; ++j) part(i, j) = none ? 0 : nan<T>;
      } else if (one) {
        part(0, 0) = g[from];
      } else {
        level(to - from, w + from, g + from, near, part);
      }
    }
  }
}

template <class T>
void sizes(Size batch, Size n, const T* x, T* size) {
  for (Size b = 0; b < batch; ++b, x += n) size[b] = largest(n, x);
}

template <class T>
void unless(Size batch, Size n, Size k, const T* x, T* c) {
  for (Size b = 0; b < batch; ++b, x += n, c += k)
    if (largest(n, x) != 0) std::fill_n(c, k, T(0));
}

}  // namespace

extern "C" {
LINALG_TURN(double, f64) { turn(batch, n, w, along, v); }
LINALG_TURN(float, f32) { turn(batch, n, w, along, v); }
LINALG_TURN_BOTH(double, f64) { turn_both(batch, m, n, k, s, along, u, vt); }
LINALG_TURN_BOTH(float, f32) { turn_both(batch, m, n, k, s, along, u, vt); }
LINALG_QUOTIENT(double, f64) { quotient(batch, m, n, kind, strict, w, size, x); }
LINALG_QUOTIENT(float, f32) { quotient(batch, m, n, kind, strict, w, size, x); }
LINALG_GROUPS(double, f64) { inside_groups(batch, n, several, w, x); }
LINALG_GROUPS(float, f32) { inside_groups(batch, n, several, w, x); }
LINALG_LEVEL(double, f64) { level(batch, n, singular, square, w, g, size, x); }
LINALG_LEVEL(float, f32) { level(batch, n, singular, square, w, g, size, x); }
LINALG_SIZE(double, f64) { sizes(batch, n, x, size); }
LINALG_SIZE(float, f32) { sizes(batch, n, x, size); }
LINALG_UNLESS(double, f64) { unless(batch, n, k, x, c); }
LINALG_UNLESS(float, f32) { unless(batch, n, k, x, c); }
}

}  // namespace lantern::linalg
