// What the reverse of a call or a loop keeps, as the operation's attribute.
//
//   call[checkpoint] @f(...)      its arguments; what is inside is computed again
//   loop[memory 65536] ...        states and frames of iterations in at most so many bytes, the rest computed again
//   loop[checkpoints 10] ...      at most so many states, the rest computed again
//
//   push[3, copy] %x              of a tensor: the elements go onto the tape; `pop[3, copy]` makes a tensor of them
//
// The attributes of calls and loops speak to reverse mode alone. Of a loop in continuation-passing style the
// `fun` carries it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// The attribute of a call.
inline constexpr std::int64_t checkpointed = 2;

inline bool is_checkpointed(const Op& op) { return op.is(Opcode::call_) && op.integer == checkpointed; }

/// Of push and pop: a tape owns the elements of its tensors, rather than referring to the arena.
inline void own_elements(Op& op) { op.number = 1; }
inline bool owns_elements(const Op& op) {
  return is_on_tape(op) && op.number == 1;
}

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
