// Matrix products and contractions among sums of products.
#pragma once

#include <optional>
#include <string>

#include "lantern/ir/graph.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::passes {

/// r[i,j] = sum over k of x[i,k] y[k,j], each matrix as it lies or transposed.
struct MatrixProduct {
  std::size_t x, y;  ///< which operands
  char i, j, k;
};
/// The matrix product that a notation is; nothing for others.
std::optional<MatrixProduct> matrix_product(const ir::Notation& n);

/// A product of two tensors as a matrix product of groups of indices, one for each point of `batch`:
///
///     "nc[i+k][j+l],ockl->noij"        rows o, columns nij, sums ckl
///
/// A place is a sum of multiples of indices, so an element's address is a number for the row and one for the
/// column: both matrices are read where they lie, whatever the tensors' ranks (Matthews, High-performance
/// tensor contraction without transposition, SIAM J. Sci. Comput. 2018; of a convolution this is im2col
/// without the matrix that it makes).
struct Contraction {
  std::size_t x, y;  ///< which operands: of the rows, and of the columns
  std::string batch, rows, columns, sums;
  std::string letters() const { return batch + rows + columns + sums; }
};
/// The contraction that a notation is; nothing where rows, columns or sums have no index.
std::optional<Contraction> contraction(const ir::Notation& n);

/// A sum over a window of each channel by itself, as a depthwise convolution is:
///
///     "ngc[2i+p-1][2j+q-1],gocpq->ngoij"        o and c have one place
///
/// Where a place lies outside the first tensor, nothing is added.
struct ChannelWindow {
  Contraction of;
  char other = 0, channel = 0;  ///< n and g, 0 where there is none
  struct Place {
    char row, window;
    std::int64_t stride, dilation, before;  ///< [stride row + dilation window - before]
  } place[2];
};
/// The window of each channel that a sum of products is, of tensors of these types; nothing for others, for large windows, and for
/// windows of unknown size.
std::optional<ChannelWindow> channel_window(const ir::Notation& n, const ir::Type& x, const ir::Type& y);

/// Products of sizes that are known to be smaller, a cube of 40, become loops, which may join others; the
/// rest call a routine.
inline constexpr std::int64_t large_product = 64000;

}  // namespace lantern::passes
