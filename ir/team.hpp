// Calls that may run at the same time, as an attribute of the first of them.
//
//   %1 = call[fork 3 2] @part(...)    this call and the next two, which are of the same function, are a team
//   %2 = call @part(...)
//   %3 = call @part(...)
//
// Run one after another, as they are, they mean what they say; so many threads (here 2) may share them out
// as well: each takes the next call that is not taken yet. Whoever forms a team has seen to it that no call
// of it reads what another writes: where one takes a tensor that the one before gives, they work on different
// elements of it, in the same memory.
#pragma once

#include <cstdint>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// The most calls a team has, and the most threads.
inline constexpr std::int64_t largest_team = 64;

/// Of the first call of a team, how many there are; otherwise 0. As attribute it lies below zero, where no
/// other attribute of a call does.
inline std::int64_t team_size(const Op& op) {
  return op.is(Opcode::call_) && op.integer < 0 ? -op.integer / (largest_team + 1) : 0;
}
/// How many threads share them out, from 2 to that number.
inline std::int64_t team_threads(const Op& op) {
  return team_size(op) > 0 ? -op.integer % (largest_team + 1) : 0;
}
inline void lead_team(Op& call, std::int64_t size, std::int64_t threads) {
  call.integer = -(size * (largest_team + 1) + threads);
}

/// True where the calls of the team do follow each other.
bool team_stands(const Op& first);

}  // namespace lantern::ir
