// Functions of matrices whose derivatives are right where eigenvalues or singular values are equal.
#pragma once

#include "lantern/compiler/linalg/typed.hpp"

namespace lantern::linalg {

/// u p = a.
template <class M>
struct Polar {
  M u, p;
};

/// v diag(f(w)) v^T for the eigenvalues w and eigenvectors v of symmetric a, n x n; batches. It reads the lower
/// triangle of a. a counts as symmetric: the derivative is that for (a + a^T) / 2, and the
/// adjoint is symmetric.
///
/// f is a function of a number, over Rep, that is differentiable at the eigenvalues as often as the result is
/// differentiated. It captures nothing that is differentiated. Derivatives are of any order, forward and
/// reverse: they take divided differences of f, which are its derivatives where values are equal, by
/// quadrature of its derivative where values are near and by differences of values where they are not. That
/// of order k takes n^(k + 1) of these. Where f is not differentiable, NaN or inf as f has it.
///
/// spectral(a, [](Rep<double> x) { return log(x); }) is the logarithm. Sources: N. J. Higham, "Functions of
/// Matrices", 2008, theorem 3.11 and appendix B.16; R. Bhatia, "Matrix Analysis", 1997, section V.3.
template <detail::Dense T, class F>
detail::Matrix<T> spectral(const Rep<T>& a, const F& f,
                           std::source_location l = std::source_location::current()) {
  using Number = Rep<core::detail::element_t<T>>;
  const detail::Scalar scalar = [f](const detail::Datum& x) { return Number(f(Number(x))).datum(); };
  return detail::Matrix<T>(detail::spectral(detail::value(a, l), scalar).datum);
}

/// The symmetric x with x x = a, for symmetric a, n x n, with eigenvalues >= 0; batches. It reads the lower triangle
/// of a. NaN where an eigenvalue is below 0 by more than n eps times the largest. Derivatives of
/// any order: NaN where a is singular, unless they keep that. Source: N. J. Higham, "Functions of Matrices",
/// 2008, section 6.1.
template <detail::Dense T>
detail::Matrix<T> sqrtm(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  return detail::Matrix<T>(detail::sqrtm(detail::value(a, l)).datum);
}

/// The symmetric x with expm(x) = a, for symmetric a, n x n, with eigenvalues > 0: `spectral` of the
/// logarithm. Derivatives of any order.
template <detail::Dense T>
detail::Matrix<T> logm(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  return spectral(
      a, [](const Rep<core::detail::element_t<T>>& x) { return log(x); }, l);
}

/// The polar factors of a, m x n, m >= n, of full rank: u, m x n, with orthonormal columns, nearest to a of
/// all such matrices, and positive definite p, n x n; batches. NaN where a singular value is no more than m
/// eps times the largest. Derivatives of any order. Error: m < n; the factors of the transposed matrix are
/// what is wanted then. Sources: N. J. Higham, "Functions of Matrices", 2008, chapter 8; C. Kenney, A. J.
/// Laub, "Polar decomposition and matrix sign function condition estimates", 1991.
template <detail::Dense T>
Polar<detail::Matrix<T>> polar(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  const detail::Values all = detail::polar(detail::value(a, l));
  return {detail::Matrix<T>(all[0].datum), detail::Matrix<T>(all[1].datum)};
}

/// The pseudoinverse of a, m x n of any rank: n x m; batches. Singular values of no more than max(m, n) eps
/// times the largest count as 0. Derivatives, of any order, are those in directions that keep the rank; in
/// others the pseudoinverse is not continuous. Source: G. H. Golub, V. Pereyra, "The differentiation of
/// pseudo-inverses and nonlinear least squares problems whose variables separate", 1973.
template <detail::Dense T>
detail::Matrix<T> pinv(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  return detail::Matrix<T>(detail::pinv(detail::value(a, l)).datum);
}

/// Of the x with the smallest norm of a x - b the one of the smallest norm, `pinv` times b, for a, m x n of
/// any rank; b: m, or m x k; batches. Derivatives are those of `pinv`.
template <detail::Dense T, detail::Dense U>
detail::Like<U> lstsq(const Rep<T>& a, const Rep<U>& b,
                      std::source_location l = std::source_location::current()) {
  return detail::Like<U>(detail::lstsq(detail::value(a, l), detail::value(b, l)).datum);
}

}  // namespace lantern::linalg
