// What lies between loops of a block that are to run one right after the other.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/schedule/equal_numbers.hpp"
#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

/// True where iterations save values or take them from tapes.
bool uses_tapes(const Op* loop);
/// True unless no iteration can fail: by an index outside, a division of integers, or what is not known.
bool may_fail(const Op* loop, const EqualNumbers& equal);

/// The operations between neighbouring loops and a later one of the same block. `earlier` ones need no result
/// of the loops and can stay before them, `later` ones can follow the last loop.
struct Between {
  std::vector<Op*> earlier, later;
  std::unordered_set<const Value*> made;  ///< results of the loops, and of what needs them
};
/// Nothing where there are more than `most`. `together` gives the operations that must keep their places
/// beside one, itself included.
template <class Together>
std::optional<Between> between(const std::vector<Op*>& loops, const Op* last, std::ptrdiff_t most,
                               Together&& together);
std::optional<Between> between(const std::vector<Op*>& loops, const Op* last, std::ptrdiff_t most);

/// How the loops and the last one may fail, and which of the last one's operands are results of the loops
/// that it works on.
struct Reordering {
  bool first_fails = true, last_fails = true;
  std::unordered_set<const Value*> handed_on;
};
/// True where the loops can run as late as the last one, and that one before what needs them: nothing passes
/// an effect or a check that might tell another failure first, and no tensor would have to be copied.
bool undisturbed(const std::vector<Op*>& loops, const Op* last, const Between& between,
                 const Reordering& how);

template <class Together>
std::optional<Between> between(const std::vector<Op*>& loops, const Op* last, std::ptrdiff_t most,
                               Together&& together) {
  Between found;
  for (const Op* loop : loops) found.made.insert(loop->results.begin(), loop->results.end());
  const auto& ops = loops.back()->parent->ops;
  const auto from = std::ranges::find(ops, loops.back()), to = std::ranges::find(ops, last);
  if (to - from > most) return {};
  const auto needs = [&](const Op* op) {
    bool any = false;
    const auto look = [&](const Op* o) {
      for (const Value* v : o->operands) any |= found.made.contains(v);
    };
    look(op);
    for (Block* b : op->blocks) ir::walk(b, look);
    return any;
  };
  for (auto it = from + 1; it != to;) {
    const std::vector<Op*> unit = together(*it);
    it += std::ssize(unit);
    const bool later = std::ranges::any_of(unit, needs);
    for (Op* op : unit) {
      if (later) found.made.insert(op->results.begin(), op->results.end());
      (later ? found.later : found.earlier).push_back(op);
    }
  }
  return found;
}

}  // namespace lantern::passes
