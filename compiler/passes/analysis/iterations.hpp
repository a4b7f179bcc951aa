// Properties of a loop's iterations: how much work each does, and how their results combine in the loop's state.
#pragma once

#include <cstdint>
#include <optional>

#include "lantern/compiler/passes/analysis/loop_state.hpp"

namespace lantern::passes {

/// How long an operation takes, an addition being 1; inner loops whose iterations are not known count as a few.
std::int64_t weight(const Op& op);
/// The same of all operations of a block.
std::int64_t weight(const Block* block);

/// What iterations do with a piece of state that does not count, and how they come together in it if they may run
/// in any order; `combine` is none where one needs what another has left.
struct Combination {
  ir::Combine combine = ir::Combine::none;
  std::optional<LoopStateSummary> use;
};
Combination combination(const Uses& uses, const Op* loop, std::size_t state);

/// True where what iterations need of each other comes about in lanes as well: of two operations of the body
/// that access one element, the later iteration has the later one. All lanes of a block are through with an
/// operation before any comes to the next. Two sums of adjoints come in any order. (Allen and Kennedy, 2001, 2.3:
/// lexically forward dependences.)
bool is_lexically_forward(const LoopStateSummary& use, const Op* loop);

/// True for a counting loop whose iterations may run in any order, but for the order of what they print and save: each
/// loop-carried value is an induction variable or a reduction.
bool is_doall(const Op* loop);
/// The same, where iterations also ask nothing of what they make: sums, and elements of their own. Reverse mode of
/// such a loop is reverse mode of its body, over the same iterations: what is known of the results' adjoints
/// before the loop is all that an iteration needs. (Paszke et al., "Getting to the point: index sets and
/// parallelism-preserving autodiff for pointful array programming", ICFP 2021.)
bool is_doall_write_only(const Op* loop);

}  // namespace lantern::passes
