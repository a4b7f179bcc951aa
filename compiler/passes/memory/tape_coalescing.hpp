// tape_coalescing: values that are always saved together and read back together lie on one tape, side by
// side.
//
//   push[1] %a          push[1] %a, %b          %b = pop[2]         %a, %b = pop[1]
//   push[2] %b                                  %a = pop[1]
//
// One comparison with the end of the memory, and one pointer that moves, for all of them.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void tape_coalescing(ir::Module& module);

}  // namespace lantern::passes
