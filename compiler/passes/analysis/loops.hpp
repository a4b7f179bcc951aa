// What passes ask about loops: how they count, and whether their iterations depend on each other.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

/// How a loop counts by ones: `for (i = first; i < bound; ++i)`, with a bound from outside or a constant; or down, as
/// `while (0 < n)` where every iteration takes one from n.
struct CountedLoop {
  std::size_t index = 0;     ///< of the state
  Value* first = nullptr;    ///< null where it counts down
  Value* bound = nullptr;    ///< where it counts down: what n begins with
  Value* number = nullptr;   ///< of the iteration, in the body: i, or n - 1, which falls to 0
  bool down = false;
};
/// Nothing for a loop that does not count up.
std::optional<CountedLoop> counted(const Op* loop);
/// Nothing for a loop that does not count down.
std::optional<CountedLoop> counts_down(const Op* loop);
/// Of a loop that counts up or down.
std::optional<CountedLoop> counts(const Op* loop);
/// The same where the numbers of iterations are all from 0 to below `bound`, each once.
std::optional<CountedLoop> normalized_range(const Op* loop);

/// True where nothing but a loop's comparison ends it: its condition computes nothing else.
bool ends_by_comparison(const Op* loop);

/// A tensor that begins with one value throughout, by `fill` or zeros_like.
struct Filled {
  bool zeros = false;           ///< by zeros_like, whatever the fill behind it holds
  bool zero = false;            ///< the value is 0
  const Op* fill = nullptr;     ///< what tells its sizes: a fill,
  const Value* like = nullptr;  ///< or a tensor of the same shape
};
/// How a tensor was filled; nothing for others, and for those without a value.
std::optional<Filled> filled(const Value* v);
/// Memory for a tensor of the sizes of a filled one.
Value* uninitialised_like(ir::Builder& b, const Value* filled);

/// The loops below a block, outer ones first.
std::vector<Op*> loops_in(Block* block);
inline std::vector<Op*> loops_in(const ir::Function& f) { return loops_in(f.body); }
/// The loops around a block, from `outermost` inwards, or all of them.
std::vector<const Op*> loops_around(const Block* block, const Op* outermost = nullptr);

/// The loop that makes up a body, beside constants, sizes and sums of integers; null where there is more.
Op* only_loop(const Block* body);

/// Whether a loop has a first iteration: its condition, written before the loop.
Value* first_condition(ir::Builder& b, const Op* loop);

/// True for one integer, or two constants of it.
bool same_number(const Value* a, const Value* b);

/// The number of iterations of a counted loop, where first and bound are constants and it counts by one.
std::optional<std::int64_t> constant_trip_count(const Op* loop);
/// The same of a loop that counts up or down.
std::optional<std::int64_t> known_trip_counts(const Op* loop);
/// How many iterations it has at most, where that is known: up to min(n, first + 3) there are three.
std::optional<std::int64_t> most_iterations(const Op* loop);

/// What is added to an integer state in every iteration, if that is a constant.
std::optional<std::int64_t> step_of(const Op* loop, std::size_t state);
/// Such a state after so many iterations (an i64): first + step * iterations, in the state's own type, which wraps.
Value* stepped(ir::Builder& b, Value* first, std::int64_t step, Value* iterations);

/// True for sizes, and what is made of them and of small numbers by a few sums and quotients.
bool cannot_overflow(const Value* v, int steps = 4);
/// How often `for (i = first; i < bound; ++i)` runs, or a number that is not positive. Where the bound comes
/// before the start they may be so far from each other that their difference wraps.
Value* iterations_between(ir::Builder& b, Value* first, Value* bound);

/// True for a read of a state that is as it was at the start of the iteration, at an element that nothing else
/// changes: what the iteration changes of this state, on its way to operand `state` of the yield, is that element
/// alone, and the element is its `own`; or it changes nothing.
bool reads_loop_entry_value(const Uses& uses, const Op& get, std::size_t state, bool own);

}  // namespace lantern::passes
