// inplace: marks the updates of tensors that may work in the memory of their first operand (attribute 1).
//
// An operation may overwrite memory that the program owns and nothing reads any more: it was made in this
// function (or handed over by every caller), it is on no tape, and the update is its last use on every path
// and in every iteration of the loops around. State of a loop that is updated in the body gets memory of its own
// before the loop where it has none (`copy`). Loops that fill or accumulate into an array thus take linear
// time and constant memory.
//
// Memory that is ours and that nothing reads any more is given back (`forget`): what is made next lies there,
// still in the cache, and a program takes as much memory as it needs at one time.
//
// Runs last: marks hold for the order of uses as it is. Functions in continuation-passing style are left
// alone.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void inplace(ir::Module& module);

}  // namespace lantern::passes
