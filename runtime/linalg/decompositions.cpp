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

}  // namespace

extern "C" {
LINALG_QR(double, f64) { qr(batch, m, n, a, q, r); }
LINALG_QR(float, f32) { qr(batch, m, n, a, q, r); }
LINALG_EIGH(double, f64) { eigh(batch, n, w, a); }
LINALG_EIGH(float, f32) { eigh(batch, n, w, a); }
LINALG_SVD(double, f64) { svd(batch, m, n, a, u, s, vt); }
LINALG_SVD(float, f32) { svd(batch, m, n, a, u, s, vt); }
}

}  // namespace lantern::linalg
