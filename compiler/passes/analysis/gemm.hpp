// Matrix products among sums of products.
#pragma once

#include <optional>

#include "lantern/ir/notation.hpp"

namespace lantern::passes {

/// r[i,j] = sum over k of x[i,k] y[k,j], each matrix as it lies or transposed.
struct MatrixProduct {
  std::size_t x, y;  ///< which operands
  char i, j, k;
};
/// The matrix product that a notation is; nothing for others.
std::optional<MatrixProduct> matrix_product(const ir::Notation& n);

/// Products of sizes that are known to be smaller, a cube of 40, become loops, which may join others; the
/// rest call a routine.
inline constexpr std::int64_t large_product = 64000;

}  // namespace lantern::passes
