// Copies of the computation of single iterations, outside of their loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/passes/analysis/loops.hpp"
#include "lantern/compiler/passes/analysis/offset.hpp"

namespace lantern::passes {

/// The iterations of a loop that counts by ones, up from `first` to below `last`, or down to it.
struct IterationRange {
  std::size_t index = 0;    ///< which of the state counts
  Value* number = nullptr;  ///< in the body: what numbers the iterations
  std::int64_t ahead = 0;   ///< of the number, the body's parameter: 1 where it counts down, else 0
  Offset first, last;
};
/// Nothing for a loop whose condition asks something else, and for one with a bound on memory.
std::optional<IterationRange> iteration_range(const Op* loop);

/// True where values are to be had in any order of the iterations: from what is not `inside`, from numbers that
/// `count`, by a limited number of operations, none of which changes a state or is a loop, and from elements
/// of states that are `unchanged`; `popped`: and from what they take from a tape.
bool is_rematerialisable(std::vector<const Value*> values, const std::function<bool(const Value*)>& inside,
                  const std::function<bool(const Value*)>& counts,
                  const std::function<bool(const Op&)>& unchanged, bool popped = false);

/// A loop whose iterations are written again, and where: `base` represents the number of an iteration.
struct IterationBase {
  const Op* loop = nullptr;
  IterationRange range;
  Offset base;
};

/// Appends the values that an iteration has to a block: an iteration of loops in one another, each with the number that
/// is its base and a shift. What is equal is written once, also where iterations share it: of a[i + 1] - a[i], the
/// iteration before has what is a[i] - a[i - 1].
///
/// The iterations' values may need pure operations on values from outside the loops, on the iterations' numbers, and on
/// elements of the loops' state as it was before the loops.
class IterationCloner {
 public:
  using Shifts = std::vector<std::int64_t>;  ///< loop by loop

  IterationCloner(ir::Module& module, std::vector<IterationBase> loops, Block* into)
      : loops_(std::move(loops)), b_(module, into), numbers_(loops_.size()) {
    b_.loc = loops_.front().loop->loc;
  }

  /// What `v` of a loop's body is in the iteration that lies so far from the bases.
  Value* at(Value* v, const Shifts& shifts);
  ir::Builder& builder() { return b_; }

 private:
  using Key = std::tuple<Opcode, std::int64_t, std::vector<Value*>>;

  Value* number(std::size_t loop, std::int64_t shift);
  Value* copy(const Op& op, const Shifts& shifts);
  Op* copy_branch(const Op& op, const Shifts& shifts);

  std::vector<IterationBase> loops_;
  ir::Builder b_;
  std::map<std::pair<const Value*, Shifts>, Value*> made_;
  std::vector<std::map<std::int64_t, Value*>> numbers_;
  std::map<Key, Value*> equal_;
};

/// Roughly how long what iterations compute in a block takes, an addition being 1: whether it is to be computed
/// again or kept.
std::size_t price(const Block& b);
std::size_t price(const Op& op);

/// An offset as a value at the end of a block.
Value* materialise(ir::Builder& b, const Offset& o);

}  // namespace lantern::passes
