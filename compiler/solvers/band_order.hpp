// The sparsity of a problem's optimality conditions, in an order in which they are a narrow band.
#pragma once

#include <cstdint>
#include <vector>

#include "lantern/compiler/ad/sparse.hpp"

namespace lantern::solvers {

/// Where the Hessian of a problem's Lagrangian by (x, y, w) may differ from zero, how its entries are
/// computed, and an order of the unknowns in which it is a narrow band. The program sees it as data:
/// KktSparsityOf<Rep<int64_t>, Rep<Array<int64_t>>>.
template <class Count, class Indices>
struct KktSparsityOf {
  core::SparsityOf<Count, Indices> hessian{};
  Indices place{};  ///< of each unknown in the band's order
  Count band{};     ///< how far from the diagonal entries lie, at most

  /// As an argument of a compiled function.
  template <class C, class I>
  requires(!std::same_as<Indices, I> && std::is_constructible_v<I, const Indices&>)
  operator KktSparsityOf<C, I>() const {
    return {core::SparsityOf<C, I>(hessian), I(place), band};
  }
};
using KktSparsity = KktSparsityOf<std::int64_t, std::vector<std::int64_t>>;

namespace detail {

/// An order of the unknowns in which a symmetric pattern is a narrow band: breadth-first from an unknown at
/// an end, fewer neighbours first, reversed (Cuthill & McKee 1969; George & Liu, "Computer Solution of Large
/// Sparse Positive Definite Systems", 1981, 4.3).
KktSparsity in_band_order(core::Sparsity s);

}  // namespace detail
}  // namespace lantern::solvers
