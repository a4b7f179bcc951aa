// The Cholesky factor and its adjoint.
#include "lantern/runtime/linalg/kernels.h"
#include "lantern/runtime/linalg/lapack.hpp"

namespace lantern::linalg {

namespace {

template <class T>
void cholesky(Size batch, Size n, T* a) {
  const int size = narrow(n), ld = leading(n);
  for (Size b = 0; b < batch && n > 0; ++b, a += n * n) {
    int info = 0;
    LINALG_BY_TYPE(T, potrf_, "U", &size, a, &ld, &info, 1);  // of the transposed matrix: our lower triangle
    if (info != 0) {
      set_nan(a, n * n);
      continue;
    }
    for (Size i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  }
}

/// The adjoint of a small factor, by elements. Source: Murray 2016, section 4.2 (chol_unblocked_rev).
template <class T>
void adjoint_by_elements(Block<const T> l, Block<T> bar) {
  for (Size j = l.rows; j-- > 0;) {
    const T inverse = 1 / l(j, j);
    for (Size i = j + 1; i < l.rows; ++i) bar(j, j) -= bar(i, j) * l(i, j) * inverse;
    bar(j, j) *= T(0.5) * inverse;
    for (Size i = j + 1; i < l.rows; ++i) bar(i, j) *= inverse;
    for (Size k = 0; k < j; ++k) bar(j, k) -= 2 * bar(j, j) * l(j, k);
    for (Size i = j + 1; i < l.rows; ++i)
      for (Size k = 0; k < j; ++k) {
        bar(j, k) -= bar(i, j) * l(i, k);
        bar(i, k) -= bar(i, j) * l(j, k);
      }
  }
}

/// By blocks. Source: I. Murray, "Differentiation of the Cholesky decomposition", 2016, section 4.3
/// (chol_blocked_rev). The adjoint of the lower triangle replaces that of l.
template <class T>
void adjoint_by_blocks(Block<const T> l, Block<T> bar) {
  constexpr Size width = 64;
  const Size n = l.rows;
  std::vector<T> square(count(width * width));
  for (Size end = n; end > 0;) {
    const Size begin = std::max<Size>(0, end - width), size = end - begin, below = n - end;
    const auto r = l.part(begin, 0, size, begin), d = l.part(begin, begin, size, size);
    const auto b = l.part(end, 0, below, begin), c = l.part(end, begin, below, size);
    const auto r_bar = bar.part(begin, 0, size, begin), d_bar = bar.part(begin, begin, size, size);
    const auto b_bar = bar.part(end, 0, below, begin), c_bar = bar.part(end, begin, below, size);
    trsm<T>(false, true, false, false, d, c_bar);
    gemm<T>(-1, false, fixed(c_bar), false, r, 1, b_bar);
    const Block<T> product{square.data(), size, size, size};
    gemm<T>(1, true, fixed(c_bar), false, c, 0, product);
    for (Size i = 0; i < size; ++i)
      for (Size j = 0; j <= i; ++j) d_bar(i, j) -= below > 0 ? product(i, j) : 0;
    gemm<T>(-1, true, fixed(c_bar), false, b, 1, r_bar);
    adjoint_by_elements<T>(d, d_bar);
    for (Size i = 0; i < size; ++i)
      for (Size j = 0; j < size; ++j) product(i, j) = (j <= i ? d_bar(i, j) : 0) + (i <= j ? d_bar(j, i) : 0);
    gemm<T>(-1, false, fixed(product), false, r, 1, r_bar);
    end = begin;
  }
}

template <class T>
void cholesky_adjoint(Size batch, Size n, const T* l, T* adjoint) {
  for (Size b = 0; b < batch; ++b, l += n * n, adjoint += n * n) {
    adjoint_by_blocks<T>({l, n, n, n}, {adjoint, n, n, n});
    for (Size i = 0; i < n; ++i)
      for (Size j = 0; j < i; ++j) adjoint[j * n + i] = adjoint[i * n + j] *= T(0.5);
  }
}

}  // namespace

extern "C" {
LINALG_CHOLESKY(double, f64) { cholesky(batch, n, a); }
LINALG_CHOLESKY(float, f32) { cholesky(batch, n, a); }
LINALG_CHOLESKY_ADJOINT(double, f64) { cholesky_adjoint(batch, n, l, adjoint); }
LINALG_CHOLESKY_ADJOINT(float, f32) { cholesky_adjoint(batch, n, l, adjoint); }
}

}  // namespace lantern::linalg
