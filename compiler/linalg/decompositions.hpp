// Factorisations, least squares, the exponential.
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
/// not negative, with k the smaller of m and n; batches. Derivatives are NaN where the first k columns are
/// dependent. Sources: S. F. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions
/// with application in optimum experimental design", 2010; Seeger et al., "Auto-differentiating linear
/// algebra", 2017.
template <detail::Dense T>
Qr<detail::Matrix<T>> qr(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  const detail::Values all = detail::qr(detail::value(a, l));
  return {detail::Matrix<T>(all[0].datum), detail::Matrix<T>(all[1].datum)};
}

/// Eigenvalues, ascending, and orthonormal eigenvectors of symmetric a, n x n, of which the lower triangle is
/// read; batches. a counts as symmetric, as for `cholesky`. Vectors are determined up to their sign, and up
/// to rotations where values are equal: the derivative leaves such rotations out (1 / 0 is 0 in it), and so
/// is right for all that does not depend on them. Source: Giles 2008, section 3.1.
template <detail::Dense T>
Eigh<detail::Matrix<T>> eigh(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  const detail::Values all = detail::eigh(detail::value(a, l));
  return {detail::Matrix<T>(all[0].datum), detail::Matrix<T>(all[1].datum)};
}

/// The reduced singular value decomposition of a, m x n: u, m x k, s, k, descending, vt, k x n, with k the
/// smaller of m and n; batches. Vectors are determined up to a common sign, and more where values are equal
/// or 0: the derivative takes 1 / (s_j^2 - s_i^2) and 1 / s_i for 0 where they are 1 / 0, and so is right for
/// all that does not depend on the choice. Sources: J. Townsend, "Differentiating the singular value
/// decomposition", 2016; Z.-Q. Wan, S.-X. Zhang, "Automatic differentiation for complex valued SVD", 2019.
template <detail::Dense T>
Svd<detail::Matrix<T>> svd(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  const detail::Values all = detail::svd(detail::value(a, l));
  return {detail::Matrix<T>(all[0].datum), detail::Matrix<T>(all[1].datum), detail::Matrix<T>(all[2].datum)};
}

/// The x with the smallest norm of a x - b, by QR, for a, m x n, m >= n, of full rank; b: m, or m x k;
/// batches. NaN where a column is zero or exactly dependent. Error: m < n.
template <detail::Dense T, detail::Dense U>
detail::Like<U> lstsq(const Rep<T>& a, const Rep<U>& b,
                      std::source_location l = std::source_location::current()) {
  return detail::Like<U>(detail::lstsq(detail::value(a, l), detail::value(b, l)).datum);
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
