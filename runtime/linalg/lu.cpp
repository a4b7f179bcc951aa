// Factors with pivots, and what follows from them: solutions, inverses, determinants, cofactors.
#include "lantern/runtime/linalg/kernels.h"
#include "lantern/runtime/linalg/lapack.hpp"

namespace lantern::linalg {

namespace {

template <class T>
void transpose(Size n, T* a) {
  for (Size i = 0; i < n; ++i)
    for (Size j = 0; j < i; ++j) std::swap(a[i * n + j], a[j * n + i]);
}

template <class T>
void lu(Size batch, Size n, T* a, std::int64_t* p) {
  std::vector<int> pivots;
  for (Size b = 0; b < batch; ++b, a += n * n, p += n) {
    transpose(n, a);
    factor_transposed(n, a, pivots);
    transpose(n, a);
    for (Size i = 0; i < n; ++i) p[i] = i;
    for (Size i = 0; i < n; ++i) std::swap(p[i], p[pivots[count(i)] - 1]);
  }
}

template <class T>
bool singular(Size n, const T* lu) {
  for (Size i = 0; i < n; ++i)
    if (lu[i * n + i] == 0) return true;
  return false;
}

void permute(Size n, Size k, bool inverse, const std::int64_t* p, double* b) {
  linalg_rows_f64(1, n, k, inverse, p, b);
}
void permute(Size n, Size k, bool inverse, const std::int64_t* p, float* b) {
  linalg_rows_f32(1, n, k, inverse, p, b);
}

template <class T>
void lu_solve(Size batch, Size n, Size k, bool transposed, const T* lu, const std::int64_t* p, T* b) {
  for (Size i = 0; i < batch; ++i, lu += n * n, p += n, b += n * k) {
    if (singular(n, lu)) {
      set_nan(b, n * k);
      continue;
    }
    const Block<const T> factors{lu, n, n, n};
    const Block<T> x{b, n, k, k};
    if (!transposed) permute(n, k, false, p, b);
    trsm<T>(true, !transposed, transposed, !transposed, factors, x);
    trsm<T>(true, transposed, transposed, transposed, factors, x);
    if (transposed) permute(n, k, true, p, b);
  }
}

template <class T>
void inverse(Size batch, Size n, T* a) {
  std::vector<int> pivots;
  const int size = narrow(n), ld = leading(n);
  for (Size b = 0; b < batch && n > 0; ++b, a += n * n) {
    int info = factor_transposed(n, a, pivots);
    if (info == 0)
      with_work<T>([&](T* work, int lwork) {
        LINALG_BY_TYPE(T, getri_, &size, a, &ld, pivots.data(), work, &lwork, &info);
      });
    if (info != 0) set_nan(a, n * n);
  }
}

/// The sign of the exchanges.
int parity(const std::vector<int>& pivots) {
  int sign = 1;
  for (std::size_t i = 0; i < pivots.size(); ++i)
    if (pivots[i] != static_cast<int>(i) + 1) sign = -sign;
  return sign;
}

template <class T>
void determinant(Size batch, Size n, const T* a, T* sign, T* logarithm, T* value) {
  std::vector<int> pivots;
  std::vector<T> f;
  for (Size b = 0; b < batch; ++b, a += n * n) {
    f.assign(a, a + n * n);
    factor_transposed(n, f.data(), pivots);
    sign[b] = value[b] = static_cast<T>(parity(pivots));
    logarithm[b] = 0;
    for (Size i = 0; i < n; ++i) {
      const T u = f[count(i * n + i)];
      value[b] *= u;
      sign[b] *= std::isnan(u) ? u : static_cast<T>((u > 0) - (u < 0));
      logarithm[b] += std::log(std::abs(u));
    }
  }
}

/// Whether the pivots of a factor say that the matrix is well away from singular ones.
template <class T>
bool regular(Size n, const std::vector<T>& factor) {
  T smallest = std::numeric_limits<T>::infinity(), largest = 0;
  for (Size i = 0; i < n; ++i) {
    const T u = std::abs(factor[count(i * n + i)]);
    smallest = std::min(smallest, u), largest = std::max(largest, u);
  }
  return smallest > std::sqrt(std::numeric_limits<T>::epsilon()) * largest;
}

void svd(Size n, const double* a, double* u, double* s, double* vt) { linalg_svd_f64(1, n, n, a, u, s, vt); }
void svd(Size n, const float* a, float* u, float* s, float* vt) { linalg_svd_f32(1, n, n, a, u, s, vt); }

/// u s v^T of a square matrix, and the sign of det(u) det(v).
template <class T>
struct Singular {
  std::vector<T> u, s, vt;
  T sign = 1;
  Singular(Size n, const T* a) : u(count(n * n)), s(count(n)), vt(count(n * n)) {
    svd(n, a, u.data(), s.data(), vt.data());
    T sign_v = 1, logarithm = 0, value = 0;
    determinant(1, n, u.data(), &sign, &logarithm, &value);
    determinant(1, n, vt.data(), &sign_v, &logarithm, &value);
    sign *= sign_v;
  }
  /// Of all values but numbers i and j.
  T product_without(Size i, Size j) const {
    T all = 1;
    for (Size k = 0; k < static_cast<Size>(s.size()); ++k)
      if (k != i && k != j) all *= s[count(k)];
    return all;
  }
};

/// det(a) a^-T; near singular matrices det(u v^T) u diag(product of the other singular values) v^T.
/// Source: G. W. Stewart, "On the adjugate matrix", Linear Algebra and its Applications 283 (1998).
template <class T>
void cofactors(Size batch, Size n, T* a) {
  std::vector<int> pivots;
  for (Size b = 0; b < batch; ++b, a += n * n) {
    std::vector<T> f(a, a + n * n);
    factor_transposed(n, f.data(), pivots);
    T sign = 1, logarithm = 0, value = 1;
    if (regular(n, f)) {
      determinant(1, n, a, &sign, &logarithm, &value);
      inverse(1, n, a);
      transpose(n, a);
      for (Size i = 0; i < n * n; ++i) a[i] *= value;
      continue;
    }
    Singular<T> f_svd(n, a);
    for (Size k = 0; k < n; ++k) {
      const T others = f_svd.sign * f_svd.product_without(k, k);
      for (Size i = 0; i < n; ++i) f_svd.u[count(i * n + k)] *= others;
    }
    gemm<T>(1, false, {f_svd.u.data(), n, n, n}, false, {f_svd.vt.data(), n, n, n}, 0, {a, n, n, n});
  }
}

/// The derivative of the cofactors in the direction h: u m v^T times det(u v^T), where with d = u^T h v
/// m_ii = sum over j of p_ij d_jj, m_ij = -p_ij d_ji, and p_ij is the product of the singular values but i and j:
/// the derivative of the cofactors of a diagonal matrix.
template <class T>
void cofactors_tangent(Size batch, Size n, const T* a, T* h) {
  const auto all = [n](const T* x) { return Block<const T>{x, n, n, n}; };
  std::vector<T> c(count(n * n)), d(count(n * n)), f(count(n * n));
  const auto block = [n](std::vector<T>& x) { return Block<T>{x.data(), n, n, n}; };
  for (Size b = 0; b < batch; ++b, a += n * n, h += n * n) {
    const Singular<T> s(n, a);
    gemm<T>(1, true, all(s.u.data()), false, all(h), 0, block(c));
    gemm<T>(1, false, all(c.data()), true, all(s.vt.data()), 0, block(d));
    for (Size i = 0; i < n; ++i) {
      T own = 0;
      for (Size j = 0; j < n; ++j) {
        if (j == i) continue;
        const T others = s.sign * s.product_without(i, j);
        own += others * d[count(j * n + j)];
        f[count(i * n + j)] = -others * d[count(j * n + i)];
      }
      f[count(i * n + i)] = own;
    }
    gemm<T>(1, false, all(s.u.data()), false, all(f.data()), 0, block(c));
    gemm<T>(1, false, all(c.data()), false, all(s.vt.data()), 0, {h, n, n, n});
  }
}

}  // namespace

extern "C" {
LINALG_COFACTORS_TANGENT(double, f64) { cofactors_tangent(batch, n, a, h); }
LINALG_COFACTORS_TANGENT(float, f32) { cofactors_tangent(batch, n, a, h); }
LINALG_LU(double, f64) { lu(batch, n, a, p); }
LINALG_LU(float, f32) { lu(batch, n, a, p); }
LINALG_LU_SOLVE(double, f64) { lu_solve(batch, n, k, transposed, lu, p, b); }
LINALG_LU_SOLVE(float, f32) { lu_solve(batch, n, k, transposed, lu, p, b); }
LINALG_INVERSE(double, f64) { inverse(batch, n, a); }
LINALG_INVERSE(float, f32) { inverse(batch, n, a); }
LINALG_DETERMINANT(double, f64) { linalg::determinant(batch, n, a, sign, logarithm, determinant); }
LINALG_DETERMINANT(float, f32) { linalg::determinant(batch, n, a, sign, logarithm, determinant); }
LINALG_COFACTORS(double, f64) { cofactors(batch, n, a); }
LINALG_COFACTORS(float, f32) { cofactors(batch, n, a); }
}

}  // namespace lantern::linalg
