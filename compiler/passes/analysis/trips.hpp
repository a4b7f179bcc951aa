// Whether the trips of a counting loop depend on each other, and how much each has to do: the analysis behind
// parallel.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lantern/compiler/passes/analysis/lanes.hpp"
#include "lantern/ir/recursion.hpp"

namespace lantern::passes {

/// What a trip does with a piece of the loop's state.
enum class StateRole {
  index,    ///< what the loop counts by
  counter,  ///< an integer that counts with it
  sum,      ///< a number or a tensor that is only added to
  extreme,  ///< the largest or smallest number so far, or a truth so far: by max, min, land or lor alone
  own       ///< a tensor of which each trip reads and writes elements that no other does
};

/// A loop whose trips may run in any order.
struct FreeTrips {
  std::size_t index = 0;
  Value* bound = nullptr;
  std::vector<StateRole> roles;  ///< of the loop's state, in order
  std::vector<Opcode> extremes;  ///< likewise: which of the operations; otherwise without meaning
  std::int64_t weight = 0;       ///< of a trip: roughly how many additions take as long
};

/// How long an operation takes, an addition being 1; inner loops whose trips are not known count as a few.
std::int64_t weight(const Op& op);

/// Analyses loops of one module, which does not change meanwhile.
class TripAnalysis {
 public:
  /// `reassociate`: false where the program's own sums are to keep their order.
  explicit TripAnalysis(const ir::Module& module, bool reassociate = true)
      : tapes_(tape_uses(module)), recursive_(ir::recursive_functions(module)), reassociate_(reassociate) {}

  /// True where trips may run in any order; otherwise `why` says what is against it.
  bool free(Op* loop, FreeTrips& trips, std::string& why) const;
  bool is_recursive(const ir::Function* f) const { return recursive_.contains(f); }

 private:
  TapeUses tapes_;
  std::unordered_set<const ir::Function*> recursive_;
  bool reassociate_;
};

}  // namespace lantern::passes
