// merge: functions that are equal become one.
//
// A model repeats its layers, and an optimiser does the same for every parameter; cut into pieces (outline), most of
// them are equal, and each would be compiled for itself. The field calls it identical code folding.
//
//   call @update_part(%w1, %g1)              call @update_part(%w1, %g1)
//   call @update_part_2(%w2, %g2)            call @update_part(%w2, %g2)
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Behind outline, which makes the pieces. Functions are equal where their operations, attributes, types, places in
/// the user's program and names are, and they call the same. The entry, continuations' functions, and what threads
/// share out are not merged with others.
void merge(ir::Module& module);

}  // namespace lantern::passes
