// A summary of all definitions and uses of one loop-carried value in an iteration.
#pragma once

#include <optional>
#include <vector>

#include "lantern/compiler/passes/analysis/loops.hpp"

namespace lantern::passes {

/// What happens to a piece of state on its way from the start to the end of an iteration: through loops inside, and
/// through both sides of branches, at the end of which it is the same result.
struct LoopStateSummary {
  std::vector<Value*> values;      ///< what it becomes, one after the other
  std::vector<const Op*> reads;    ///< of its elements
  std::vector<const Op*> updates;  ///< of its elements: set and add_at
  bool whole = false;              ///< rows are added to, or all of it
  bool ordered_sum = false;           ///< a number is added that the program asks for, not one of its derivatives
  bool sum = false;               ///< something is added to a number, or to all of a tensor
  bool is_read_modify_write_sum = false;       ///< all that is read is set again to what it was and something added
  std::optional<Opcode> extreme;  ///< the operation that takes the larger, or such; AND and OR are such

  /// True where it is nothing but a sum over the iterations, of numbers or of what is added to elements.
  bool is_pure_accumulation() const;
  /// The same, also where elements are set to the sum of what they were and something: t[i] = t[i] + x.
  bool only_summed() const;
  /// True where nothing happens to it but that the larger, or such, of it and another number is taken.
  bool only_extreme() const;
  /// True where no iteration changes anything.
  bool only_read() const;
  /// True where elements are written one after the other in the body: no branch or loop hands the tensor on.
  bool is_straight(const Op* loop) const;
  /// Reads and updates.
  std::vector<const Op*> accesses() const;
};

/// The read of the element that is set, where the value set is a sum, used once, of what the element was and
/// of other things, and nothing else asks for what it was: t[i] = t[i] + x - y. Else null.
const Op* read_of_own_element(const Uses& uses, const Op& set);

/// How a loop uses a piece of its state; nothing where that is anything else, or where its condition asks for
/// it.
std::optional<LoopStateSummary> state_use(const Uses& uses, const Op* loop, std::size_t state);

}  // namespace lantern::passes
