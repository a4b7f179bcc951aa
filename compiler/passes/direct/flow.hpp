// flow: an adjoint to which nothing flows contributes nothing, whatever slopes lie on its way.
//
// A branch that is not taken, a result or a state that is not asked for, and the cases of a select leave adjoints
// at zero. As numbers these zeros would make NaN of infinite slopes (0 * inf), and what is right elsewhere would
// be lost. Of each cell this pass finds out, before unwind, whether something is added to it
//
//   never    what would be made of it is added nowhere: these additions go
//   always   nothing is done
//   where a condition holds, which the block sees: products with it are kept by a select of that condition
//   now and then   the cell is marked: it begins as -0. The sum of -0 and any x is x, and what is added is never -0,
//            since x + 0 is not. So the cell is -0 exactly where nothing has been added, and products are kept by a
//            select of that. An array is marked, element by element, where products with its adjoint may have infinite
//            factors (poles.hpp)
//
// The ref_new of a marked cell has the attribute 1. copysign(1, x) tells -0 from 0. Zeros that are numbers, as those of a
// factor 0, stay +0.
// What adds elements up (sum along dimensions, broadcast, fill) has the condition that something flows to any of them.
// Sums of products (matrices) take zeros as numbers. Signed zeros: IEEE 754-2019, 6.3.
#pragma once

#include <unordered_set>

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Cells that begin as -0, made by ref_new or parameters.
using MarkedCells = std::unordered_set<const ir::Value*>;

/// Of a derivative unit in continuation-passing style, and of the functions that it calls in this style. Does
/// nothing to others. With `again` the unit is to be differentiated: infinite derivatives of factors count, too.
MarkedCells guard_zeros(ir::Function& unit, bool again = false);

}  // namespace lantern::passes
