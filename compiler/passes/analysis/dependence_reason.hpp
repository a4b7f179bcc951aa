// The loop-carried dependence that keeps a loop sequential, described for the author of the loop.
#pragma once

#include <string>

#include "lantern/compiler/passes/analysis/loop_state.hpp"

namespace lantern::passes {

/// What an iteration needs of the iteration before, by a piece of the loop's state, and what to write instead where
/// there is something: "an iteration needs 'y' of the iteration before: two iterations may set one element at line 14, where
/// the index is read from 'to'; what is added, y[k] += v, may be added in any order". In lower case, without
/// a full stop.
std::string why_dependent(const Uses& uses, const Op* loop, std::size_t state);

/// The same for a sum that is to be added up as the program says.
std::string kept_in_order(const Op* loop, std::size_t state);

}  // namespace lantern::passes
