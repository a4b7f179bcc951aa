// What the reverse of a call or a loop keeps, as the operation's attribute.
//
//   call[checkpoint] @f(...)      its arguments; what is inside is computed again
//   loop[memory 65536] ...        states and frames of trips in at most so many bytes, the rest computed again
//   loop[checkpoints 10] ...      at most so many states, the rest computed again
//
// The attribute speaks to reverse mode alone. Of a loop in continuation-passing style the `fun` carries it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// Of a call. (An attribute of 1 means in place.)
inline constexpr std::int64_t checkpointed = 2;

inline bool is_checkpointed(const Op& op) { return op.is(Opcode::call_) && op.integer == checkpointed; }

/// How much a loop may keep; neither where both are zero.
struct LoopMemory {
  std::int64_t bytes = 0;
  std::int64_t checkpoints = 0;
  bool bounded() const { return bytes > 0 || checkpoints > 0; }

  /// As an attribute: bytes above zero, checkpoints below.
  std::int64_t attribute() const { return bytes > 0 ? std::max<std::int64_t>(bytes, 2) : -checkpoints; }
  static LoopMemory of(const Op& op) {
    return op.integer > 0 ? LoopMemory{op.integer, 0} : LoopMemory{0, -op.integer};
  }
};

}  // namespace lantern::ir
