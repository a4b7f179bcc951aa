// The functions of <lantern/linalg.hpp> once types are gone. Matrices are of rank 2, batches of them of a higher
// one.
#pragma once

#include "lantern/compiler/linalg/value.hpp"

namespace lantern::linalg {

/// Which triangle of a matrix a solution takes, and how.
struct Triangle {
  bool lower = true;        ///< the lower one; else the upper
  bool transposed = false;  ///< the transposed system is solved
  bool unit = false;        ///< the diagonal is not read: it counts as 1
};

namespace detail {

Value matrix_product(const Value& a, const Value& b);
Value cholesky(const Value& a);
Value cholesky_solve(const Value& l, const Value& b);
Value solve_triangular(const Value& t, const Value& b, const Triangle& which);
Value solve(const Value& a, const Value& b);
Value inverse(const Value& a);
/// The right side b of a x = b as a matrix of columns: itself, or, where it has one rank less than a,
/// vectors.
Value columns_for(const char* function, const Value& a, const Value& b);
/// The right side of systems that several dimensions count, in one batch.
Value right_in_one_batch(const char* function, const Value& a, const Value& b);
/// One number for each matrix, in a tensor of the batch's dimensions, of a single matrix in a vector.
Value det(const Value& a);
Values slogdet(const Value& a);
/// The number of a single matrix.
Value only(const Value& numbers);
Value logdet(const Value& a);
Values lu(const Value& a);
Value lu_solve(const Value& factors, const Value& permutation, const Value& b);
Values qr(const Value& a);
Values eigh(const Value& a);
Values svd(const Value& a);
Value lstsq(const Value& a, const Value& b);
Value pinv(const Value& a);
Value expm(const Value& a);
/// A function of numbers, and the matrix that is that function of a symmetric one.
using Scalar = std::function<Datum(const Datum& x)>;
Value spectral(const Value& a, const Scalar& f);
Value sqrtm(const Value& a);
Values polar(const Value& a);
/// The smaller of two sizes.
Datum smaller(const Datum& a, const Datum& b, const Call& call);
/// Of the last `dimensions` dimensions.
Values fft(const Value& re, const Value& im, int dimensions, bool inverse);
Values rfft(const Value& x, int dimensions);
Value irfft(const Value& re, const Value& im, const Datum& n, int dimensions);

}  // namespace detail

}  // namespace lantern::linalg
