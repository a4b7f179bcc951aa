/* Dense linear algebra and Fourier transforms as plain C functions over LAPACK, BLAS and FFTW: what
 * <lantern/linalg.hpp> calls by name, and what emitted code of such programs is linked with.
 *
 * Matrices lie row by row, `batch` of them one behind the other. Sizes may be 0, and are below 2^31. What has
 * no result (a matrix that is not positive definite or singular, an iteration that does not converge, an
 * operand that is not finite) gives NaN in all elements of that matrix of the batch. All functions may be
 * called from several threads at once. */
#ifndef LANTERN_RUNTIME_LINALG_KERNELS_H
#define LANTERN_RUNTIME_LINALG_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* c += op(a) op(b), of m x k and k x n; op transposes where its flag says so. */
#define LINALG_PRODUCT(T, S)                                                                 \
  void linalg_product_##S(int64_t batch, int64_t m, int64_t n, int64_t k, bool a_transposed, \
                          bool b_transposed, const T* a, const T* b, T* c)
/* a, n x n: what lies below, on and above the diagonal is multiplied by its weight; weight 0 gives 0. */
#define LINALG_WEIGHTED(T, S) \
  void linalg_weighted_##S(int64_t batch, int64_t n, T below, T diagonal, T above, T* a)
/* b, n x k, becomes x with op(t) x = b; one triangle of t is read; unit: its diagonal is 1. */
#define LINALG_TRIANGULAR(T, S)                                                                           \
  void linalg_triangular_##S(int64_t batch, int64_t n, int64_t k, bool lower, bool transposed, bool unit, \
                             const T* t, T* b)
/* a becomes lower l with l l^T = a, whose lower triangle is read. */
#define LINALG_CHOLESKY(T, S) void linalg_cholesky_##S(int64_t batch, int64_t n, T* a)
/* The adjoint of l becomes that of a, symmetric. */
#define LINALG_CHOLESKY_ADJOINT(T, S) \
  void linalg_cholesky_adjoint_##S(int64_t batch, int64_t n, const T* l, T* adjoint)
/* a becomes l (below the diagonal; 1 on it) and u with l u = a[p, :]. */
#define LINALG_LU(T, S) void linalg_lu_##S(int64_t batch, int64_t n, T* a, int64_t* p)
/* b, n x k, becomes x with op(a) x = b, of what linalg_lu made of a. */
#define LINALG_LU_SOLVE(T, S)                                                                 \
  void linalg_lu_solve_##S(int64_t batch, int64_t n, int64_t k, bool transposed, const T* lu, \
                           const int64_t* p, T* b)
/* b, n x k, becomes b[p, :]; inverse: what has b for its b[p, :]. */
#define LINALG_ROWS(T, S) \
  void linalg_rows_##S(int64_t batch, int64_t n, int64_t k, bool inverse, const int64_t* p, T* b)
#define LINALG_INVERSE(T, S) void linalg_inverse_##S(int64_t batch, int64_t n, T* a)
/* The sign (-1, 0, 1) and the logarithm of the size of the determinant; the determinant. */
#define LINALG_DETERMINANT(T, S) \
  void linalg_determinant_##S(int64_t batch, int64_t n, const T* a, T* sign, T* logarithm, T* determinant)
/* a becomes the matrix of its cofactors, the gradient of its determinant; also where that is 0. */
#define LINALG_COFACTORS(T, S) void linalg_cofactors_##S(int64_t batch, int64_t n, T* a)
/* a, m x n with m >= n: q, m x n, with orthonormal columns, upper r, n x n, with a diagonal >= 0. */
#define LINALG_QR(T, S) void linalg_qr_##S(int64_t batch, int64_t m, int64_t n, const T* a, T* q, T* r)
/* a, of which the lower triangle is read, becomes its eigenvectors, as columns; w its eigenvalues. */
#define LINALG_EIGH(T, S) void linalg_eigh_##S(int64_t batch, int64_t n, T* w, T* a)
/* a, m x n: u, m x k, s descending, vt, k x n, with k the smaller of m and n. */
#define LINALG_SVD(T, S) \
  void linalg_svd_##S(int64_t batch, int64_t m, int64_t n, const T* a, T* u, T* s, T* vt)
#define LINALG_EXPM(T, S) void linalg_expm_##S(int64_t batch, int64_t n, T* a)
/* x, n x m, becomes the pseudoinverse of a, m x n; singular values up to max(m, n) eps times the largest count as 0. */
#define LINALG_PINV(T, S) void linalg_pinv_##S(int64_t batch, int64_t m, int64_t n, const T* a, T* x)
/* Symmetric a, of which the lower triangle is read, becomes its symmetric square root. An eigenvalue below 0 by
 * rounding counts as 0. */
#define LINALG_SQRTM(T, S) void linalg_sqrtm_##S(int64_t batch, int64_t n, T* a)
/* c becomes x with p x + x p = c, for symmetric p with eigenvalues >= 0. NaN where 0 is divided into more than 0. */
#define LINALG_LYAPUNOV(T, S) void linalg_lyapunov_##S(int64_t batch, int64_t n, const T* p, T* c)
/* a, m x n with m >= n: u, m x n, with orthonormal columns, symmetric p, n x n, with eigenvalues >= 0 and u p = a; of
 * full rank. */
#define LINALG_POLAR(T, S) \
  void linalg_polar_##S(int64_t batch, int64_t m, int64_t n, const T* a, T* u, T* p)
/* h, n x n, becomes the derivative of the matrix of cofactors of a in its direction; also where det(a) is 0. */
#define LINALG_COFACTORS_TANGENT(T, S) \
  void linalg_cofactors_tangent_##S(int64_t batch, int64_t n, const T* a, T* h)

/* What follows has groups of equal values: neighbours in w, n, which is sorted, are in one group where they differ by
 * no more than eps^(2/3) times the largest |w|; small ones, by no more than sqrt(eps) |w| or (n + 8) eps times the
 * largest.
 *
 * Another basis of each group, of the columns of v: that in which `along`, n x n in the basis of v, is diagonal;
 * where that is a multiple of 1, one that is no special one. Twice: of the columns of u and the rows of vt. */
#define LINALG_TURN(T, S) void linalg_turn_##S(int64_t batch, int64_t n, const T* w, const T* along, T* v)
#define LINALG_TURN_BOTH(T, S) \
  void linalg_turn_both_##S(int64_t batch, int64_t m, int64_t n, int64_t k, const T* s, const T* along, T* u, T* vt)
/* x, m x n: column j and, of kinds 0 and 1, row i, divided by w[j] - w[i] (kind 0, and 0 inside groups), by
 * w[i] + w[j] (kind 1), by w[j] (kind 2). A numerator that is no larger than sqrt(eps) times `size`, the size of what
 * it was made of, counts as 0 over 0, which is 0; a larger one over 0 is NaN: of kind 0 where `strict`, else 0. Of kind
 * 0 and `strict`, between groups nearer than eps^(2/3) times the largest: 0 where it is small, else NaN. */
#define LINALG_QUOTIENT(T, S)                                                                             \
  void linalg_quotient_##S(int64_t batch, int64_t m, int64_t n, int64_t kind, bool strict, const T* w,    \
                           const T* size, T* x)
/* x, n x n: 0 outside of groups; several: and in those of one value. */
#define LINALG_GROUPS(T, S) void linalg_groups_##S(int64_t batch, int64_t n, bool several, const T* w, T* x)
/* x, n x n, is the direction that g, n, was taken along, in the basis of the vectors; it becomes the matrix that has
 * g for its diagonal in every basis of a group: p x + q inside each group with p and q from g and the diagonal of x.
 * Where x is a multiple of 1 and g is one number, to sqrt(eps) of its `size`, that number; where there is none, NaN.
 * Of `singular` values, a group of 0 gives 0 where g is 0 there, else NaN, unless it is one value of a `square`
 * matrix. */
#define LINALG_LEVEL(T, S)                                                                             \
  void linalg_level_##S(int64_t batch, int64_t n, bool singular, bool square, const T* w, const T* g,  \
                        const T* size, T* x)
/* The largest absolute value of the n numbers of each x; and c, k numbers, 0 where a number of x is not 0. */
#define LINALG_SIZE(T, S) void linalg_size_##S(int64_t batch, int64_t n, const T* x, T* size)
#define LINALG_UNLESS(T, S) \
  void linalg_unless_##S(int64_t batch, int64_t n, int64_t k, const T* x, T* c)
/* re + i im, n0 x n1 x n2, becomes its unnormalised transform, with exp(-i ...), or exp(i ...) where
 * `backward`. */
#define LINALG_FFT(T, S) \
  void linalg_fft_##S(int64_t batch, int64_t n0, int64_t n1, int64_t n2, bool backward, T* re, T* im)
/* Of real x the coefficients 0 to n2 / 2 of the last dimension. */
#define LINALG_RFFT(T, S) \
  void linalg_rfft_##S(int64_t batch, int64_t n0, int64_t n1, int64_t n2, const T* x, T* re, T* im)
/* The real transform with exp(i ...) of such coefficients; those that are not there are conjugates. */
#define LINALG_IRFFT(T, S) \
  void linalg_irfft_##S(int64_t batch, int64_t n0, int64_t n1, int64_t n2, const T* re, const T* im, T* x)

#define LINALG_KERNELS(FUNCTION) \
  FUNCTION(PRODUCT)              \
  FUNCTION(WEIGHTED)             \
  FUNCTION(TRIANGULAR)           \
  FUNCTION(CHOLESKY)             \
  FUNCTION(CHOLESKY_ADJOINT)     \
  FUNCTION(LU)                   \
  FUNCTION(LU_SOLVE)             \
  FUNCTION(ROWS)                 \
  FUNCTION(INVERSE)              \
  FUNCTION(DETERMINANT)          \
  FUNCTION(COFACTORS)            \
  FUNCTION(QR)                   \
  FUNCTION(EIGH)                 \
  FUNCTION(SVD)                  \
  FUNCTION(EXPM)                 \
  FUNCTION(SQRTM)                \
  FUNCTION(LYAPUNOV)             \
  FUNCTION(POLAR)                \
  FUNCTION(PINV)                 \
  FUNCTION(COFACTORS_TANGENT)    \
  FUNCTION(TURN)                 \
  FUNCTION(TURN_BOTH)            \
  FUNCTION(QUOTIENT)             \
  FUNCTION(GROUPS)               \
  FUNCTION(LEVEL)                \
  FUNCTION(SIZE)                 \
  FUNCTION(UNLESS)               \
  FUNCTION(FFT)                  \
  FUNCTION(RFFT)                 \
  FUNCTION(IRFFT)
#define LINALG_DECLARED(NAME) \
  LINALG_##NAME(double, f64); \
  LINALG_##NAME(float, f32);
LINALG_KERNELS(LINALG_DECLARED)
#undef LINALG_DECLARED

#ifdef __cplusplus
}
#endif

#endif
