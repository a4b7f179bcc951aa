// What trips of a loop compute, written again outside that loop for the trips beside one another.
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

/// The trips of a loop that counts by ones, up from `first` to below `last`, or down to it.
struct TripRange {
  std::size_t index = 0;    ///< which of the state counts
  Value* number = nullptr;  ///< in the body: what numbers the trips
  std::int64_t ahead = 0;   ///< of the number, the body's parameter: 1 where it counts down, else 0
  Offset first, last;
};
/// Nothing for a loop whose condition asks something else, and for one with a bound on memory.
std::optional<TripRange> trip_range(const Op* loop);

/// True where values are to be had in any order of the trips: from what is not `inside`, from numbers that
/// `count`, by a limited number of operations, none of which changes a state or is a loop, and from elements
/// of states that are `unchanged`; `popped`: and from what they take from a tape.
bool in_any_order(std::vector<const Value*> values, const std::function<bool(const Value*)>& inside,
                  const std::function<bool(const Value*)>& counts,
                  const std::function<bool(const Op&)>& unchanged, bool popped = false);

/// A loop over an array, from one index to below another: `each` builds what a trip makes of it.
Value* over(ir::Builder& b, Value* array, Value* from, Value* to,
            const std::function<Value*(ir::Builder&, Value* index, Value* array)>& each);

/// A loop whose trips are written again, and where: `base` stands for the number of a trip.
struct TripBase {
  const Op* loop = nullptr;
  TripRange range;
  Offset base;
};

/// Appends the values that a trip has to a block: a trip of loops in one another, each with the number that
/// is its base and a shift. What is equal is written once, also where trips share it: of a[i + 1] - a[i], the
/// trip before has what is a[i] - a[i - 1].
///
/// The trips' values may need pure operations on values from outside the loops, on the trips' numbers, and on
/// elements of the loops' state as it was before the loops.
class ShiftedTrips {
 public:
  using Shifts = std::vector<std::int64_t>;  ///< loop by loop

  ShiftedTrips(ir::Module& module, std::vector<TripBase> loops, Block* into)
      : loops_(std::move(loops)), b_(module, into), numbers_(loops_.size()) {
    b_.loc = loops_.front().loop->loc;
  }

  /// What `v` of a loop's body is in the trip that lies so far from the bases.
  Value* at(Value* v, const Shifts& shifts);
  ir::Builder& builder() { return b_; }

 private:
  using Key = std::tuple<Opcode, std::int64_t, std::vector<Value*>>;

  Value* number(std::size_t loop, std::int64_t shift);
  Value* copy(const Op& op, const Shifts& shifts);

  std::vector<TripBase> loops_;
  ir::Builder b_;
  std::map<std::pair<const Value*, Shifts>, Value*> made_;
  std::vector<std::map<std::int64_t, Value*>> numbers_;
  std::map<Key, Value*> equal_;
};

/// Roughly how long what trips compute in a block takes, an addition being 1: whether it is to be computed
/// again or kept.
std::size_t price(const Block& b);

/// An offset as a value at the end of a block.
Value* written(ir::Builder& b, const Offset& o);

}  // namespace lantern::passes
