// Products, triangles and permutations of rows.
#include "lantern/runtime/linalg/kernels.h"
#include "lantern/runtime/linalg/lapack.hpp"

namespace lantern::linalg {

namespace {

template <class T>
void product(Size batch, Size m, Size n, Size k, bool a_transposed, bool b_transposed, const T* a, const T* b,
             T* c) {
  for (Size i = 0; i < batch; ++i, a += m * k, b += k * n, c += m * n) {
    const Block<const T> left{a, a_transposed ? k : m, a_transposed ? m : k, a_transposed ? m : k};
    const Block<const T> right{b, b_transposed ? n : k, b_transposed ? k : n, b_transposed ? k : n};
    gemm<T>(1, a_transposed, left, b_transposed, right, 1, {c, m, n, n});
  }
}

template <class T>
void weighted(Size batch, Size n, T below, T diagonal, T above, T* a) {
  for (Size b = 0; b < batch; ++b)
    for (Size i = 0; i < n; ++i)
      for (Size j = 0; j < n; ++j, ++a) {
        const T weight = j < i ? below : j == i ? diagonal : above;
        *a = weight == 0 ? 0 : weight * *a;
      }
}

template <class T>
void triangular(Size batch, Size n, Size k, bool lower, bool transposed, bool unit, const T* t, T* b) {
  for (Size i = 0; i < batch; ++i, t += n * n, b += n * k) {
    bool singular = false;
    for (Size j = 0; j < n && !unit; ++j) singular |= t[j * n + j] == 0;
    if (singular)
      set_nan(b, n * k);
    else
      trsm<T>(true, lower, transposed, unit, {t, n, n, n}, {b, n, k, k});
  }
}

template <class T>
void rows(Size batch, Size n, Size k, bool inverse, const std::int64_t* p, T* b) {
  std::vector<T> before;
  for (Size i = 0; i < batch; ++i, p += n, b += n * k) {
    before.assign(b, b + n * k);
    for (Size r = 0; r < n; ++r) {
      if (p[r] < 0 || p[r] >= n) return set_nan(b, n * k * (batch - i));  // no permutation
      const Size from = inverse ? r : p[r], to = inverse ? p[r] : r;
      std::copy_n(before.data() + from * k, k, b + to * k);
    }
  }
}

}  // namespace

extern "C" {
LINALG_PRODUCT(double, f64) { product(batch, m, n, k, a_transposed, b_transposed, a, b, c); }
LINALG_PRODUCT(float, f32) { product(batch, m, n, k, a_transposed, b_transposed, a, b, c); }
LINALG_WEIGHTED(double, f64) { weighted(batch, n, below, diagonal, above, a); }
LINALG_WEIGHTED(float, f32) { weighted(batch, n, below, diagonal, above, a); }
LINALG_TRIANGULAR(double, f64) { triangular(batch, n, k, lower, transposed, unit, t, b); }
LINALG_TRIANGULAR(float, f32) { triangular(batch, n, k, lower, transposed, unit, t, b); }
LINALG_ROWS(double, f64) { rows(batch, n, k, inverse, p, b); }
LINALG_ROWS(float, f32) { rows(batch, n, k, inverse, p, b); }
}

}  // namespace lantern::linalg
