// Which loops scatter to neighbours, and loops of their own for that.
#pragma once

#include <vector>

#include "lantern/compiler/passes/array/gathered_nest.hpp"

namespace lantern::passes {

/// Additions to the same places but for their distances.
using Neighbours = std::vector<Addition>;

/// What a nest adds to one piece of state, of the outermost loop.
struct Scatter {
  std::size_t state = 0;
  std::vector<Neighbours> neighbours;  ///< several, at different distances, none far
  std::vector<Op*> others;             ///< additions besides
  std::vector<const Op*> beside;       ///< what else it reads and sets of the state
};
/// Nothing where no neighbours are added to, or elements are not all that is read and changed.
std::optional<Scatter> scatter_of(const Nest& nest, const Uses& uses, std::size_t state);

/// True for an update that makes an element zero.
bool sets_zero(const Op& update);

/// Gives additions to neighbours loops of their own, which do nothing else. `all`: who used values of the
/// function before any loop was changed. True if anything changed.
bool distribute_scatters(ir::Module& module, Op* loop, const Uses& all);

/// Such loops.
struct ScatterNest {
  Nest nest;
  std::vector<Neighbours> neighbours;
  Value* start() const { return nest.outer()->operands[1]; }
  Value* result() const { return nest.outer()->results[1]; }
  /// The level that counts along each dimension, where that is all that indices do.
  std::optional<std::vector<std::size_t>> dimensions() const;
};
std::optional<ScatterNest> scatter_nest(Op* loop);

}  // namespace lantern::passes
