// What the trips of a loop do: how much work each is, and how they come together in the loop's state.
#pragma once

#include <cstdint>
#include <optional>

#include "lantern/compiler/passes/analysis/loop_state.hpp"

namespace lantern::passes {

/// How long an operation takes, an addition being 1; inner loops whose trips are not known count as a few.
std::int64_t weight(const Op& op);
/// The same of all operations of a block.
std::int64_t weight(const Block* block);

/// What trips do with a piece of state that does not count, and how they come together in it if they may run
/// in any order; `combine` is none where one needs what another has left.
struct Combination {
  ir::Combine combine = ir::Combine::none;
  std::optional<StateUse> use;
};
Combination combination(const Uses& uses, const Op* loop, std::size_t state);

}  // namespace lantern::passes
