// Sparsity patterns, and which columns or rows of a matrix one derivative pass can compute together.
#pragma once

#include <cstdint>
#include <vector>

namespace lantern::core::ad {

/// The positions of a matrix that may differ from zero: row i has columns column[row_start[i]] ..
/// column[row_start[i + 1] - 1], in order (compressed rows).
struct Pattern {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::int64_t> row_start, column;

  Pattern transposed() const;
  /// The positions of both, of two patterns of one size.
  Pattern merged(const Pattern& other) const;
};

/// How passes compute the matrix. The forward pass of colour c multiplies the matrix by the sum of the unit
/// vectors of the columns of that colour; the reverse pass of colour c multiplies its transpose by that of
/// the rows.
struct Colouring {
  std::vector<std::int64_t> column_colour, row_colour;  ///< -1: not in any pass
  std::int64_t forward = 0, reverse = 0;                ///< numbers of colours
  /// What passes say: element element[k] of the product of pass p is the entry number entry[k] of the
  /// pattern, for k from pass_start[p] to pass_start[p + 1] - 1; forward passes first.
  std::vector<std::int64_t> pass_start, entry, element;
};

/// A colouring of columns, of rows, or of both, with few colours: greedy, in the order of falling degree.
/// Rows with many entries are taken by reverse passes where this pays. Two columns have different colours
/// where a row that forward passes compute has entries in both, and so for rows. Source: Curtis, Powell,
/// Reid, "On the estimation of sparse Jacobian matrices", IMA J. Appl. Math. 13, 1974; Coleman, Verma, "The
/// efficient computation of sparse Jacobian matrices using automatic differentiation", SIAM J. Sci. Comput.
/// 19, 1998.
Colouring colour_jacobian(const Pattern& pattern);

/// The same for a symmetric matrix, by forward passes alone: a star colouring, in which every path of four
/// vertices has three colours, so that each entry (i, j) is alone in row i or in row j of a product.
/// Source: Gebremedhin, Manne, Pothen, "What color is your Jacobian? Graph coloring for computing
/// derivatives", SIAM Review 47, 2005, section 4.
Colouring colour_hessian(const Pattern& pattern);

}  // namespace lantern::core::ad
