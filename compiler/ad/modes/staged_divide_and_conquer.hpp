// Checkpointing without annotations, staged.
#pragma once

#include "lantern/compiler/ad/staged_reverse.hpp"
#include "lantern/ir/graph.hpp"

namespace lantern::core::ad {

/// Reverse mode in which every loop keeps a number of states that does not depend on its trips, and computes
/// the rest again (Griewank and Walther, "Algorithm 799: revolve", for counting loops; thinned out as they
/// run where the number of trips does not show beforehand). A loop's state is its continuation, which can be
/// called again. With 32 states each of 10^6 trips is computed at most 6 more times, each of 10^9 at most 10
/// more. Calls keep their arguments: of a recursion that branches, a call at depth d is computed at most d +
/// 1 more times, and what is kept grows as the depth. One that calls itself once a time keeps its frames, as
/// many as it has on the stack; so do functions and loops of an inner derivative, whose tapes others read.
class StagedDivideAndConquer : public StagedReverse {
 public:
  using StagedReverse::StagedReverse;
  const char* name() const override { return "divide-and-conquer reverse mode"; }

  Datums loop(const Datums& initial, const std::vector<ir::Type>& state, const Condition& condition,
            const Body& body, std::int64_t attribute, const Location& loc) override;
  Datums call(ir::Function* callee, const Datums& arguments, std::int64_t attribute,
            const Location& loc) override;
  void push(std::int64_t tape, const Datum& value, const Location& loc) override;
  Datum pop(std::int64_t tape, const ir::Type& type, const Location& loc) override;

 private:
  /// The loops around the current block cannot be run again.
  void keep_all();
};

}  // namespace lantern::core::ad
