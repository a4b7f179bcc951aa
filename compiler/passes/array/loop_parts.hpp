// Index set splitting of one loop: in each part the result of a comparison is known.
#pragma once

#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

/// Appends an iteration of a loop to a block, from this state, in which `comparison` of its body, if any, has a known
/// answer; gives the next state.
std::vector<Value*> clone_iteration(ir::Builder& b, const Op& loop, const std::vector<Value*>& state,
                                    const Op* comparison, bool answer);

/// What was done instead of a loop gives its results; the loop is removed.
void replace_loop(Op* loop, const std::vector<Value*>& results);

}  // namespace lantern::passes
