// flow: an adjoint to which nothing flows contributes nothing, whatever slopes lie on its way.
//
// A branch that is not taken, a result or a state that is not asked for, and the cases of a select leave adjoints
// at zero. As numbers these zeros would make NaN of infinite slopes (0 * inf), and what is right elsewhere would
// be lost. Of each cell this pass finds out, before unwind, whether something is added to it
//
//   never    what would be made of it is added nowhere: these additions go
//   always   nothing is done
//   where a condition holds, which the block sees: products with it are kept by a select of that condition
//   now and then   the same, with a number beside the cell that counts the additions: a cell, too, which goes
//            where the cell goes, through loops and calls. Beside an array there is a number for each element, where
//            products with its adjoint may have infinite factors (poles.hpp) and no loop reads elements that it changes
//
// Zeros that are numbers, as those of a factor 0, stay what they are. Sums of products (matrices) take zeros as numbers.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Of a derivative unit in continuation-passing style, and of the functions that it calls in this style. Does
/// nothing to others.
void guard_zeros(ir::Function& unit);

}  // namespace lantern::passes
