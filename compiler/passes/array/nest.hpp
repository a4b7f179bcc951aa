// Nests: loops in one another that run through an index space, and the places that their iterations work on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lantern/compiler/passes/analysis/index_form.hpp"
#include "lantern/compiler/passes/array/iteration_cloner.hpp"

namespace lantern::passes {

/// Loops in one another, all counting by ones, the inner ones the same iterations every time. They compute, update
/// tensors and may take values from tapes; branches choose between numbers and change nothing.
struct Nest {
  struct Level {
    Op* loop = nullptr;
    IterationRange range;
    const Value* counter() const { return loop->blocks[1]->params[range.index]; }
  };
  std::vector<Level> levels;  ///< outermost first

  Op* outer() const { return levels.front().loop; }
  Block* innermost() const { return levels.back().loop->blocks[1]; }
  std::size_t depth() const { return levels.size(); }
  bool inside(const Value* v) const;
  bool counts(const Value* v) const;
  /// The state of the innermost loop that is this one of the outermost in every iteration: handed in and out, and
  /// used by nothing else on the way.
  std::optional<std::size_t> handed_in(const Uses& uses, std::size_t state) const;
};
std::optional<Nest> nest_of(Op* loop, const Uses& uses);
/// True for a form of what is made outside a block around a nest, and of what the nest counts by; `sizes`: and of sizes of
/// tensors that the block sees.
bool is_invariant(const IndexForm& f, const Block* body, const Nest* nest = nullptr, bool sizes = false);
/// The only write to a piece of state, whose result each iteration hands on; null where there is more than that. `read`: the
/// iteration may read the element that it writes.
Op* only_write(const Nest& nest, const Uses& uses, std::size_t state, bool read);

/// An element as an iteration sees it: iteration i accesses the element that belongs to the iteration i + by.
///
///   t[i - 1, j], i and j counting        by = (-1, 0)   of the element  [i, j]
///   t[(i + 1) * n + j]                   by = (1, 0)    of the element  [i * n + j]
struct Place {
  std::vector<std::int64_t> by;  ///< level by level
  std::vector<IndexForm> at;  ///< for each dimension, of the numbers of iterations, for which their counters stand
};
/// The place of an access to an element (get, set, add_at); nothing where indices are no sums of multiples of
/// all the counters and of what the nest does not change.
std::optional<Place> place_in(const Nest& nest, const Op& access);

/// The level that counts along each dimension, where that is all that indices do and each level does it once.
std::optional<std::vector<std::size_t>> levels_of(const Nest& nest, const Place& place);

inline Offset moved(const Offset& o, std::int64_t by) {
  return {o.base, o.by + static_cast<std::uint64_t>(by)};
}
/// What an offset is made of.
IndexForm form_of(const Offset& o);

}  // namespace lantern::passes
