// What trips of a loop compute, written again outside that loop for the trips beside one another.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/passes/loops.hpp"
#include "lantern/compiler/passes/updates.hpp"

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

/// Appends the values that the trip `base + shift` has to a block, for any number of shifts. What is equal is
/// written once, also where trips share it: of a[i + 1] - a[i], the trip before has what is a[i] - a[i - 1].
///
/// The trips' values may need pure operations on values from outside the loop, on the trip's number, and on
/// elements of the loop's state as it was before the loop.
class ShiftedTrips {
 public:
  ShiftedTrips(ir::Module& module, const Op* loop, const TripRange& range, Block* into, Offset base)
      : loop_(loop), range_(range), base_(base), b_(module, into) {
    b_.loc = loop->loc;
  }

  /// What `v` of the loop's body is in the trip `base + shift`.
  Value* at(Value* v, std::int64_t shift);
  /// The number `base + shift`.
  Value* number(std::int64_t shift);
  /// The indices of an access in that trip.
  std::vector<Value*> indices(const Op& access, std::int64_t shift);
  ir::Builder& builder() { return b_; }

 private:
  using Key = std::tuple<Opcode, std::int64_t, std::vector<Value*>>;

  Value* copy(const Op& op, std::int64_t shift);

  const Op* loop_;
  const TripRange& range_;
  Offset base_;
  ir::Builder b_;
  std::map<std::pair<const Value*, std::int64_t>, Value*> made_;
  std::map<std::int64_t, Value*> numbers_;
  std::map<Key, Value*> equal_;
};

}  // namespace lantern::passes
