// The C functions of runtime/linalg, as external functions that graphs call by name.
#pragma once

#include <type_traits>

#include "lantern/compiler/staging/external.hpp"
#include "lantern/runtime/linalg/kernels.h"

namespace lantern::linalg::detail {

using Kernel = const core::detail::ExternalFunction*;

/// Those of one element type.
struct Kernels {
  Kernel product, weighted, triangular, cholesky, cholesky_adjoint, lu, lu_solve, rows, inverse, determinant,
      cofactors, qr, eigh, svd, expm, sqrtm, lyapunov, polar, pinv, cofactors_tangent, turn, turn_both, quotient,
      groups, level, size, unless, fft, rfft, irfft;
};

template <class... P>
Kernel known(const char* name, void (*function)(P...)) {
  core::external(name, function);
  return core::detail::find_external(name);
}

/// In a header: who includes it links what it names, and nothing else.
template <class T>
const Kernels& kernels() {
#define LINALG_KERNEL(name) known("linalg_" #name, linalg_##name)
#define LINALG_ALL(S)                   \
  {LINALG_KERNEL(product_##S),          \
   LINALG_KERNEL(weighted_##S),         \
   LINALG_KERNEL(triangular_##S),       \
   LINALG_KERNEL(cholesky_##S),         \
   LINALG_KERNEL(cholesky_adjoint_##S), \
   LINALG_KERNEL(lu_##S),               \
   LINALG_KERNEL(lu_solve_##S),         \
   LINALG_KERNEL(rows_##S),             \
   LINALG_KERNEL(inverse_##S),          \
   LINALG_KERNEL(determinant_##S),      \
   LINALG_KERNEL(cofactors_##S),        \
   LINALG_KERNEL(qr_##S),               \
   LINALG_KERNEL(eigh_##S),             \
   LINALG_KERNEL(svd_##S),              \
   LINALG_KERNEL(expm_##S),             \
   LINALG_KERNEL(sqrtm_##S),            \
   LINALG_KERNEL(lyapunov_##S),         \
   LINALG_KERNEL(polar_##S),            \
   LINALG_KERNEL(pinv_##S),             \
   LINALG_KERNEL(cofactors_tangent_##S),\
   LINALG_KERNEL(turn_##S),             \
   LINALG_KERNEL(turn_both_##S),        \
   LINALG_KERNEL(quotient_##S),         \
   LINALG_KERNEL(groups_##S),           \
   LINALG_KERNEL(level_##S),            \
   LINALG_KERNEL(size_##S),             \
   LINALG_KERNEL(unless_##S),           \
   LINALG_KERNEL(fft_##S),              \
   LINALG_KERNEL(rfft_##S),             \
   LINALG_KERNEL(irfft_##S)}
  if constexpr (std::is_same_v<T, double>) {
    static const Kernels all LINALG_ALL(f64);
    return all;
  } else {
    static const Kernels all LINALG_ALL(f32);
    return all;
  }
#undef LINALG_ALL
#undef LINALG_KERNEL
}

}  // namespace lantern::linalg::detail
