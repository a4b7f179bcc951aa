// Linear systems, inverses, determinants.
#pragma once

#include "lantern/compiler/linalg/typed.hpp"

namespace lantern::linalg {

/// The factors of a matrix with its rows exchanged, l u = a[permutation, :]: l, whose diagonal is 1, below
/// the diagonal, u on and above it. The permutation of a batch has those of all matrices one behind the
/// other.
template <class M, class P>
struct Lu {
  M factors;
  P permutation;
};

/// The logarithm of the size of a determinant, and its sign: -1, 0 or 1.
template <class N>
struct Slogdet {
  N sign, log;
};

/// The matrix product by BLAS, of m x k and k x n; batches. (`matmul` is made of the program's own loops.)
/// Source of the derivative: Giles 2008, "An extended collection of matrix derivative results for forward and
/// reverse mode AD", section 2.2.2.
template <detail::Dense T, detail::Dense U>
detail::Matrix<T> product(const Rep<T>& a, const Rep<U>& b,
                          std::source_location l = std::source_location::current()) {
  return detail::Matrix<T>(detail::matrix_product(detail::value(a, l), detail::value(b, l)).datum);
}

/// x with t x = b, by substitution; t: n x n, of which the triangle `which.lower` is read, or transposed; b:
/// n, or n x k; batches. NaN where the diagonal has a zero, unless `which.unit`. Source: Giles 2008,
/// section 2.3.1.
template <detail::Dense T, detail::Dense U>
detail::Like<U> solve_triangular(const Rep<T>& t, const Rep<U>& b, const Triangle& which = {},
                                 std::source_location l = std::source_location::current()) {
  return detail::Like<U>(detail::solve_triangular(detail::value(t, l), detail::value(b, l), which).datum);
}

/// x with l l^T x = b for the lower triangular l that `cholesky` gives; b: n, or n x k; batches.
template <detail::Dense T, detail::Dense U>
detail::Like<U> cholesky_solve(const Rep<T>& l, const Rep<U>& b,
                               std::source_location at = std::source_location::current()) {
  return detail::Like<U>(detail::cholesky_solve(detail::value(l, at), detail::value(b, at)).datum);
}

/// x with a x = b, by LU with pivots; a: n x n, b: n, or n x k; batches. NaN where a pivot is zero.
/// Derivatives solve with the factors that are there. Source: Giles 2008, section 2.3.1.
template <detail::Dense T, detail::Dense U>
detail::Like<U> solve(const Rep<T>& a, const Rep<U>& b,
                      std::source_location l = std::source_location::current()) {
  return detail::Like<U>(detail::solve(detail::value(a, l), detail::value(b, l)).datum);
}

/// The factors of a, n x n; batches. A singular matrix has factors too; their derivative is NaN. The
/// derivative is that for the permutation that was chosen.
template <detail::Dense T>
auto lu(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  using P = Rep<core::Array<std::int64_t>>;
  const detail::Values all = detail::lu(detail::value(a, l));
  return Lu<detail::Matrix<T>, P>{detail::Matrix<T>(all[0].datum), P(all[1].datum)};
}
/// x with a x = b, for what `lu` made of a; b: n, or n x k; batches. NaN where a pivot is zero.
template <class M, class P, detail::Dense U>
detail::Like<U> lu_solve(const Lu<M, P>& a, const Rep<U>& b,
                         std::source_location l = std::source_location::current()) {
  return detail::Like<U>(detail::lu_solve(detail::value(a.factors, l),
                                          {a.permutation.datum(), detail::value(a.factors, l).call},
                                          detail::value(b, l))
                             .datum);
}

/// The inverse of a, n x n; batches. NaN where it is singular. To multiply by it, `solve` takes less time and
/// is more exact. Source: Giles 2008, section 2.2.3.
template <detail::Dense T>
detail::Matrix<T> inverse(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  return detail::Matrix<T>(detail::inverse(detail::value(a, l)).datum);
}

/// The determinant of a, n x n, a number; of a batch, Rep<Tensor<T, m, n, n>>, one for each matrix. Its gradient,
/// the matrix of cofactors, and its second derivatives are right for singular matrices too, of any rank; third
/// derivatives of those are NaN. Sources:
/// Giles 2008, section 2.2.4; G. W. Stewart, "On the adjugate matrix", 1998.
template <detail::Dense T>
detail::Number<T> det(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  return detail::numbers<T>(detail::det(detail::value(a, l)), a.datum().type().rank());
}
/// The same, as sign and logarithm, which large matrices do not overflow: of a singular one 0 and -inf. The
/// sign carries no derivative, that of the logarithm is a^-T.
template <detail::Dense T>
Slogdet<detail::Number<T>> slogdet(const Rep<T>& a,
                                   std::source_location l = std::source_location::current()) {
  const detail::Values all = detail::slogdet(detail::value(a, l));
  const int rank = a.datum().type().rank();
  return {detail::numbers<T>(all[0], rank), detail::numbers<T>(all[1], rank)};
}
/// The logarithm of the determinant; NaN where that is not positive. Of a positive definite matrix
/// 2 sum(log(diagonal of its Cholesky factor)) takes half the time.
template <detail::Dense T>
detail::Number<T> logdet(const Rep<T>& a, std::source_location l = std::source_location::current()) {
  return detail::numbers<T>(detail::logdet(detail::value(a, l)), a.datum().type().rank());
}

}  // namespace lantern::linalg
