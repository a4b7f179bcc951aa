// Orthogonal factors, eigenvectors of symmetric matrices, singular vectors.
#include "lantern/runtime/linalg/kernels.h"
#include "lantern/runtime/linalg/lapack.hpp"

namespace lantern::linalg {

namespace {

/// To LAPACK, a is its transpose, of n rows: a^T = r^T q^T is a factorisation of the kind LQ.
template <class T>
void qr(Size batch, Size m, Size n, const T* a, T* q, T* r) {
  if (m < n) return set_nan(q, batch * m * n), set_nan(r, batch * n * n);
  std::vector<T> f, tau(count(n));
  const int rows = narrow(n), columns = narrow(m), ld = leading(n);
  for (Size b = 0; b < batch && n > 0; ++b, a += m * n, q += m * n, r += n * n) {
    f.assign(a, a + m * n);
    int info = 0;
    with_work<T>([&](T* work, int lwork) {
      LINALG_BY_TYPE(T, gelqf_, &rows, &columns, f.data(), &ld, tau.data(), work, &lwork, &info);
    });
    for (Size i = 0; i < n; ++i)
      for (Size j = 0; j < n; ++j) r[i * n + j] = j < i ? 0 : f[count(i * n + j)];
    with_work<T>([&](T* work, int lwork) {
      LINALG_BY_TYPE(T, orglq_, &rows, &columns, &rows, f.data(), &ld, tau.data(), work, &lwork, &info);
    });
    std::copy(f.begin(), f.end(), q);
    for (Size k = 0; k < n; ++k) {
      if (r[k * n + k] >= 0 || std::isnan(r[k * n + k])) continue;
      for (Size j = k; j < n; ++j) r[k * n + j] = -r[k * n + j];
      for (Size i = 0; i < m; ++i) q[i * n + k] = -q[i * n + k];
    }
  }
}

template <class T>
void eigh(Size batch, Size n, T* w, T* a) {
  const int size = narrow(n), ld = leading(n);
  for (Size b = 0; b < batch && n > 0; ++b, w += n, a += n * n) {
    for (Size i = 0; i < n; ++i)  // what is not read may be anything
      for (Size j = i + 1; j < n; ++j) a[i * n + j] = 0;
    int info = all_finite(a, n * n) ? 0 : 1;
    if (info == 0) {
      int best = -1, none = -1;
      T asked = 0;
      LINALG_BY_TYPE(T, syevd_, "V", "U", &size, a, &ld, w, &asked, &none, &best, &none, &info, 1, 1);
      std::vector<T> work = work_of(asked);
      std::vector<int> integers(static_cast<std::size_t>(best));
      const int lwork = static_cast<int>(work.size()), liwork = best;
      LINALG_BY_TYPE(T, syevd_, "V", "U", &size, a, &ld, w, work.data(), &lwork, integers.data(), &liwork,
                     &info, 1, 1);
    }
    if (info != 0) {
      set_nan(a, n * n), set_nan(w, n);
      continue;
    }
    for (Size i = 0; i < n; ++i)
      for (Size j = 0; j < i; ++j) std::swap(a[i * n + j], a[j * n + i]);
  }
}

/// To LAPACK, a is a^T = v s u^T, and its results are ours, transposed likewise.
template <class T>
void svd(Size batch, Size m, Size n, const T* a, T* u, T* s, T* vt) {
  const Size k = std::min(m, n);
  const int rows = narrow(n), columns = narrow(m), rank = leading(k), ld = leading(n);
  std::vector<T> f;
  std::vector<int> integers(count(8 * k));
  for (Size b = 0; b < batch && k > 0; ++b, a += m * n, u += m * k, s += k, vt += k * n) {
    f.assign(a, a + m * n);
    int info = all_finite(a, m * n) ? 0 : 1;
    if (info == 0)
      with_work<T>([&](T* work, int lwork) {
        LINALG_BY_TYPE(T, gesdd_, "S", &rows, &columns, f.data(), &ld, s, vt, &ld, u, &rank, work, &lwork,
                       integers.data(), &info, 1);
      });
    if (info != 0) set_nan(u, m * k), set_nan(s, k), set_nan(vt, k * n);
  }
}

/// What is left of values that should be 0, of an n-row matrix whose largest is `most`.
template <class T>
T rounding(Size n, T most) {
  return most * static_cast<T>(n) * std::numeric_limits<T>::epsilon();
}

template <class T>
void sqrtm(Size batch, Size n, T* a) {
  std::vector<T> w(count(n)), v(count(n * n)), scaled(count(n * n));
  for (Size b = 0; b < batch && n > 0; ++b, a += n * n) {
    v.assign(a, a + n * n);
    eigh(1, n, w.data(), v.data());
    const T least = rounding(n, std::max(std::abs(w[0]), std::abs(w.back())));
    for (Size j = 0; j < n; ++j) {
      const T value = w[count(j)], root = std::sqrt(value < 0 && value >= -least ? 0 : value);
      for (Size i = 0; i < n; ++i) scaled[count(i * n + j)] = root * v[count(i * n + j)];
    }
    gemm<T>(1, false, {scaled.data(), n, n, n}, true, {v.data(), n, n, n}, 0, {a, n, n, n});
  }
}

template <class T>
void lyapunov(Size batch, Size n, const T* p, T* c) {
  std::vector<T> w(count(n)), v(count(n * n)), left(count(n * n)), x(count(n * n));
  const Block<const T> vectors{v.data(), n, n, n};
  for (Size b = 0; b < batch && n > 0; ++b, p += n * n, c += n * n) {
    v.assign(p, p + n * n);
    eigh(1, n, w.data(), v.data());
    gemm<T>(1, true, vectors, false, {c, n, n, n}, 0, {left.data(), n, n, n});
    gemm<T>(1, false, {left.data(), n, n, n}, false, vectors, 0, {x.data(), n, n, n});
    const T least = rounding(n, w.back());
    T most = 0;
    for (const T& e : x) most = std::max(most, std::abs(e));
    for (Size i = 0; i < n; ++i)
      for (Size j = 0; j < n; ++j) {
        T& e = x[count(i * n + j)];
        const T sum = w[count(i)] + w[count(j)];
        if (!(std::abs(sum) <= least))
          e /= sum;
        else
          e = std::abs(e) <= std::sqrt(std::numeric_limits<T>::epsilon()) * most
                  ? 0
                  : std::numeric_limits<T>::quiet_NaN();
      }
    gemm<T>(1, false, vectors, false, {x.data(), n, n, n}, 0, {left.data(), n, n, n});
    gemm<T>(1, false, {left.data(), n, n, n}, true, vectors, 0, {c, n, n, n});
  }
}

template <class T>
void polar(Size batch, Size m, Size n, const T* a, T* u, T* p) {
  if (m < n) return set_nan(u, batch * m * n), set_nan(p, batch * n * n);
  std::vector<T> left(count(m * n)), s(count(n)), vt(count(n * n)), scaled(count(n * n));
  for (Size b = 0; b < batch && n > 0; ++b, a += m * n, u += m * n, p += n * n) {
    svd(1, m, n, a, left.data(), s.data(), vt.data());
    if (!(s.back() > rounding(m, s[0]))) {
      set_nan(u, m * n), set_nan(p, n * n);
      continue;
    }
    for (Size i = 0; i < n; ++i)
      for (Size j = 0; j < n; ++j) scaled[count(i * n + j)] = s[count(i)] * vt[count(i * n + j)];
    gemm<T>(1, false, {left.data(), m, n, n}, false, {vt.data(), n, n, n}, 0, {u, m, n, n});
    gemm<T>(1, true, {vt.data(), n, n, n}, false, {scaled.data(), n, n, n}, 0, {p, n, n, n});
  }
}

template <class T>
T frobenius(Size n, const T* a) {
  T square = 0;
  for (Size i = 0; i < n; ++i) square += a[i] * a[i];
  return std::sqrt(square);
}

template <class T>
void transpose(Size m, Size n, const T* a, T* b) {
  for (Size i = 0; i < m; ++i)
    for (Size j = 0; j < n; ++j) b[j * m + i] = a[i * n + j];
}

/// By a = q r, which costs a part of what singular values do, for m >= n: x = r^-1 q^T. Whether no singular value may
/// count as 0, since the least one is no less than 1 / |r^-1| and the largest no more than |r|; else x is left open.
template <class T>
bool pinv_of_full_rank(Size m, Size n, const T* a, T* x) {
  std::vector<T> q(count(m * n)), r(count(n * n)), inverse(count(n * n));
  qr(1, m, n, a, q.data(), r.data());
  for (Size i = 0; i < n; ++i) inverse[count(i * n + i)] = 1;
  trsm<T>(true, false, false, false, {r.data(), n, n, n}, {inverse.data(), n, n, n});
  const T least = 2 * rounding(std::max(m, n), frobenius(n * n, r.data()));
  if (!(frobenius(n * n, inverse.data()) * least < 1)) return false;
  gemm<T>(1, false, {inverse.data(), n, n, n}, true, {q.data(), m, n, n}, 0, {x, n, m, m});
  return true;
}

template <class T>
void pinv(Size batch, Size m, Size n, const T* a, T* x) {
  const Size k = std::min(m, n);
  std::vector<T> u(count(m * k)), s(count(k)), vt(count(k * n)), other(m < n ? count(m * n) : 0);
  for (Size b = 0; b < batch && k > 0; ++b, a += m * n, x += n * m) {
    if (m >= n) {
      if (pinv_of_full_rank(m, n, a, x)) continue;
    } else {
      std::vector<T> wide(count(m * n));
      transpose(m, n, a, wide.data());
      if (pinv_of_full_rank(n, m, wide.data(), other.data())) {
        transpose(m, n, other.data(), x);
        continue;
      }
    }
    svd(1, m, n, a, u.data(), s.data(), vt.data());
    const T least = rounding(std::max(m, n), s[0]);
    for (Size i = 0; i < k; ++i) {
      const T factor = s[count(i)] <= least ? 0 : 1 / s[count(i)];
      for (Size j = 0; j < n; ++j) vt[count(i * n + j)] *= factor;
    }
    gemm<T>(1, true, {vt.data(), k, n, n}, true, {u.data(), m, k, k}, 0, {x, n, m, m});
  }
}

}  // namespace

extern "C" {
LINALG_SQRTM(double, f64) { sqrtm(batch, n, a); }
LINALG_SQRTM(float, f32) { sqrtm(batch, n, a); }
LINALG_LYAPUNOV(double, f64) { lyapunov(batch, n, p, c); }
LINALG_LYAPUNOV(float, f32) { lyapunov(batch, n, p, c); }
LINALG_POLAR(double, f64) { polar(batch, m, n, a, u, p); }
LINALG_POLAR(float, f32) { polar(batch, m, n, a, u, p); }
LINALG_PINV(double, f64) { pinv(batch, m, n, a, x); }
LINALG_PINV(float, f32) { pinv(batch, m, n, a, x); }
LINALG_QR(double, f64) { qr(batch, m, n, a, q, r); }
LINALG_QR(float, f32) { qr(batch, m, n, a, q, r); }
LINALG_EIGH(double, f64) { eigh(batch, n, w, a); }
LINALG_EIGH(float, f32) { eigh(batch, n, w, a); }
LINALG_SVD(double, f64) { svd(batch, m, n, a, u, s, vt); }
LINALG_SVD(float, f32) { svd(batch, m, n, a, u, s, vt); }
}

}  // namespace lantern::linalg
