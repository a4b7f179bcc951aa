// Reverse mode in continuation-passing style, staged (Lantern paper, Fig. 7 and 4.1).
#pragma once

#include "lantern/compiler/ad/staged_reverse.hpp"

namespace lantern::core::ad {

/// Operators are called with a continuation, a function of the code. mode::reverse calls it while staging
/// instead, and has continuations only where control flow needs them; `contify` makes the two the same.
class StagedCps : public StagedReverse {
 public:
  using StagedReverse::StagedReverse;
  const char* name() const override { return "reverse mode in continuation-passing style"; }
  Datum apply(const Operation& op, std::span<const Datum> operands) override;
};

}  // namespace lantern::core::ad
