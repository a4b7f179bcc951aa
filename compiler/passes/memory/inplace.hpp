// inplace: marks the updates of tensors that may work in the memory of their first operand.
//
// An operation may overwrite memory that the program owns and nothing reads any more: it was made in this
// function (or handed over by every caller), it is on no tape, and the update is its last use on every path
// and in every iteration of the loops around. State of a loop that is updated in the body gets memory of its own
// before the loop where it has none (`copy`). Where a part that was taken before is read later, the part is copied.
// Loops that fill or accumulate into an array thus take linear time and constant memory.
//
// Memory that is ours and that nothing reads any more is given back (`forget`): what is made next lies there,
// still in the cache, and a program takes as much memory as it needs at one time.
//
// Requires that no later pass changes the order of uses. In functions in continuation-passing style this holds between
// two operations that create or call a continuation, and nothing is given back there.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void inplace(ir::Module& module);

}  // namespace lantern::passes
