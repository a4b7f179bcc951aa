// Factorisations, the exponential.
#pragma once

#include "lantern/compiler/linalg/typed.hpp"

namespace lantern::linalg {

/// q r = a.
template <class M>
struct Qr {
  M q, r;
};
/// a v = v diag(values), v the vectors as columns.
template <class M>
struct Eigh {
  M values, vectors;
};
/// u diag(s) vt = a.
template <class M>
struct Svd {
  M u, s, vt;
};

/// Lower l with l l^T = a, for positive definite a, n x n, of which the lower triangle is read; batches. NaN
/// where it is not positive definite. a counts as symmetric: the derivative is that of l for (a + a^T) / 2,
/// and the adjoint is symmetric. Sources: I. Murray, "Differentiation of the Cholesky decomposition", 2016.
template <detail::Dense T>
detail::Matrix<T> cholesky(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  return detail::Matrix<T>(detail::cholesky(detail::value(a, l)).datum);
}

/// The reduced factors of a, m x n: q, m x k, with orthonormal columns, and upper r, k x n, whose diagonal is
/// not negative, with k the smaller of m and n; batches. Where the first k columns are dependent, columns of q are
/// not determined: derivatives there are NaN or as large as 1 over the rounding error. Sources: S. F. Walter,
/// L. Lehmann, "Algorithmic differentiation of linear algebra functions with application in optimum experimental
/// design", 2010; Seeger et al., "Auto-differentiating linear algebra", 2017.
template <detail::Dense T>
Qr<detail::Matrix<T>> qr(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  const detail::Values all = detail::qr(detail::value(a, l));
  return {detail::Matrix<T>(all[0].datum), detail::Matrix<T>(all[1].datum)};
}

/// Eigenvalues, ascending, and orthonormal eigenvectors of symmetric a, n x n, of which the lower triangle is
/// read; batches. a counts as symmetric, as for `cholesky`. Vectors are determined up to their sign, and up
/// to rotations where values are equal.
///
/// Equal values. Neighbours that differ by no more than eps^(2/3) times the largest absolute value (3.7e-11 in
/// double, 2.4e-5 in float) count as equal. Small ones count only where they differ by no more than sqrt(eps) times
/// their own size (1.5e-8 in double), or by what rounding makes of the matrix, (n + 8) eps times the largest. Derivatives
/// are those of functions that do not depend on the rotation, as far as the cotangents determine them:
/// - symmetric functions of equal values: sums, traces, log-determinants;
/// - projectors on all vectors of equal values together, whatever else the other vectors are used for.
/// NaN is the derivative of all else: of a vector among equal ones; by reverse mode of a function of one of the equal
/// values, w[0] say; of v f(w) v^T, since it depends on f' there, which neither cotangent has. For that there
/// is `spectral`. Forward mode takes the basis that the direction chooses, and knows v f(w) v^T too.
///
/// Second derivatives, in every order of the modes: of functions of the values alone; of projectors, but for forward
/// mode twice, which is NaN. NaN too are those of functions of values and vectors of one call (of those of two calls
/// they are not), and third derivatives of functions of values.
/// Between values that differ by a gap g, relative to the largest, first derivatives of functions of vectors have an
/// error of about eps / g and second ones one of eps / g^2; second derivatives of functions of values one of eps / g.
/// Those of `spectral` and `logdet` do not. Between small values with gaps below 3.7e-11 that do not count as equal,
/// first derivatives of functions of vectors are NaN, and second ones of functions of values by reverse mode twice.
///
/// Sources: Giles 2008, section 3.1; J. R. Magnus, "On differentiating eigenvalues and eigenvectors", 1985; A. S.
/// Lewis, H. S. Sendov, "Twice differentiable spectral functions", 2001.
template <detail::Dense T>
Eigh<detail::Matrix<T>> eigh(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  const detail::Values all = detail::eigh(detail::value(a, l));
  return {detail::Matrix<T>(all[0].datum), detail::Matrix<T>(all[1].datum)};
}

/// The reduced singular value decomposition of a, m x n: u, m x k, s, k, descending, vt, k x n, with k the
/// smaller of m and n; batches. Vectors are determined up to a common sign, and more where values are equal
/// or 0.
///
/// Equal values, counted as for `eigh`: derivatives are those of symmetric functions of equal values, of projectors
/// on all their left, or right, vectors together, and of u vt where a has full rank. The derivative of u vt divides
/// (u^T da v)_ij - (u^T da v)_ji by s_i + s_j. NaN is the derivative of all else, as for `eigh`: of
/// u f(s) vt with equal values, say. For that there are `polar`, `pinv`, and `spectral` of a^T a.
///
/// Values of 0, that is no more than eps^(2/3) times the largest: their vectors have no derivative, unless a single
/// one is 0 and a is square, where they have a sign like any other. Else derivatives are right for functions whose
/// slope by those values is 0, sum(s * s) say, and NaN for others.
///
/// Sources: J. Townsend, "Differentiating the singular value decomposition", 2016; Z.-Q. Wan, S.-X. Zhang,
/// "Automatic differentiation for complex valued SVD", 2019.
template <detail::Dense T>
Svd<detail::Matrix<T>> svd(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  const detail::Values all = detail::svd(detail::value(a, l));
  return {detail::Matrix<T>(all[0].datum), detail::Matrix<T>(all[1].datum), detail::Matrix<T>(all[2].datum)};
}

/// The exponential of a, n x n; batches; by Pade approximants with scaling and squaring. NaN where a is not
/// finite. Sources: N. J. Higham, "The scaling and squaring method for the matrix exponential revisited",
/// 2005; of the derivative I. Najfeld, T. F. Havel, "Derivatives of the matrix exponential and their
/// computation", 1995.
template <detail::Dense T>
detail::Matrix<T> expm(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  return detail::Matrix<T>(detail::expm(detail::value(a, l)).datum);
}

}  // namespace lantern::linalg
