// LAPACK and BLAS for both element types. What Fortran calls the rows of a column-major matrix are the
// columns of ours: each wrapper says what it does to the transposed matrix.
#pragma once

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace lantern::linalg {

using Size = std::int64_t;

#define LINALG_FORTRAN(T, p)                                                                               \
  void p##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info, std::size_t);            \
  void p##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);                \
  void p##getri_(const int* n, T* a, const int* lda, const int* pivots, T* work, const int* lwork,         \
                 int* info);                                                                               \
  void p##gelqf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork,      \
                 int* info);                                                                               \
  void p##orglq_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work,    \
                 const int* lwork, int* info);                                                             \
  void p##syevd_(const char* jobz, const char* uplo, const int* n, T* a, const int* lda, T* w, T* work,    \
                 const int* lwork, int* iwork, const int* liwork, int* info, std::size_t, std::size_t);    \
  void p##gesdd_(const char* jobz, const int* m, const int* n, T* a, const int* lda, T* s, T* u,           \
                 const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork, int* iwork, int* info, \
                 std::size_t);
extern "C" {
LINALG_FORTRAN(double, d)
LINALG_FORTRAN(float, s)
}
#undef LINALG_FORTRAN

/// The function of the element type.
#define LINALG_BY_TYPE(T, name, ...)         \
  [&] {                                      \
    if constexpr (std::is_same_v<T, double>) \
      return d##name(__VA_ARGS__);           \
    else                                     \
      return s##name(__VA_ARGS__);           \
  }()
#define LINALG_CBLAS(T, name, ...)           \
  [&] {                                      \
    if constexpr (std::is_same_v<T, double>) \
      return cblas_d##name(__VA_ARGS__);     \
    else                                     \
      return cblas_s##name(__VA_ARGS__);     \
  }()

inline int narrow(Size n) { return static_cast<int>(n); }
/// The leading dimension of rows of n elements, which BLAS wants to be at least 1.
inline int leading(Size n) { return std::max(narrow(n), 1); }
inline std::size_t count(Size n) { return static_cast<std::size_t>(n); }

template <class T>
void set_nan(T* a, Size n) {
  std::fill_n(a, n, std::numeric_limits<T>::quiet_NaN());
}
template <class T>
bool all_finite(const T* a, Size n) {
  return std::all_of(a, a + n, [](T x) { return std::isfinite(x); });
}

/// Room for as many elements as LAPACK asks for, which in float may have been rounded down.
template <class T>
std::vector<T> work_of(T asked) {
  return std::vector<T>(static_cast<std::size_t>(std::nextafter(asked, 2 * asked + 1)) + 1);
}
/// Workspace of the size that a first call, with size -1, asks for.
template <class T, class F>
void with_work(const F& call) {
  T best = 1;
  call(&best, -1);
  std::vector<T> work = work_of(best);
  call(work.data(), static_cast<int>(work.size()));
}

/// A matrix, or a part of one: the distance of rows is `stride` elements.
template <class T>
struct Block {
  T* data;
  Size rows, columns, stride;
  Block part(Size i, Size j, Size m, Size n) const { return {data + i * stride + j, m, n, stride}; }
  T& operator()(Size i, Size j) const { return data[i * stride + j]; }
};

inline CBLAS_TRANSPOSE flag(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

/// c = scale op(a) op(b) + kept c.
template <class T>
void gemm(T scale, bool a_transposed, Block<const T> a, bool b_transposed, Block<const T> b, T kept,
          Block<T> c) {
  if (c.rows == 0 || c.columns == 0) return;
  const Size k = a_transposed ? a.rows : a.columns;
  LINALG_CBLAS(T, gemm, CblasRowMajor, flag(a_transposed), flag(b_transposed), narrow(c.rows),
               narrow(c.columns), narrow(k), scale, a.data, leading(a.stride), b.data, leading(b.stride),
               kept, c.data, leading(c.stride));
}
/// b becomes op(t)^-1 b, or b op(t)^-1.
template <class T>
void trsm(bool left, bool lower, bool transposed, bool unit, Block<const T> t, Block<T> b) {
  if (b.rows == 0 || b.columns == 0) return;
  LINALG_CBLAS(T, trsm, CblasRowMajor, left ? CblasLeft : CblasRight, lower ? CblasLower : CblasUpper,
               flag(transposed), unit ? CblasUnit : CblasNonUnit, narrow(b.rows), narrow(b.columns), T(1),
               t.data, leading(t.stride), b.data, leading(b.stride));
}
template <class T>
Block<const T> fixed(const Block<T>& b) {
  return {b.data, b.rows, b.columns, b.stride};
}

/// a^T = l u, rows exchanged by `pivots`, which count from 1. Gives the number of the first zero pivot, or 0.
template <class T>
int factor_transposed(Size n, T* a, std::vector<int>& pivots) {
  const int size = narrow(n), ld = leading(n);
  pivots.resize(count(n));
  int info = 0;
  if (n > 0) LINALG_BY_TYPE(T, getrf_, &size, &size, a, &ld, pivots.data(), &info);
  return info;
}

}  // namespace lantern::linalg
