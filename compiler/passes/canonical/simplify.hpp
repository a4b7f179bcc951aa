// simplify: constant folding, common subexpressions, dead code and inlining, until nothing changes.
//
// All rewrites are exact: the program computes the same bits (the payload and sign of NaN apart), raises the
// same errors where results depend on them, and runs the same effects in the same order. A pure operation
// nothing needs is dropped even if it would have raised, but for shapes that do not fit: a check of these
// stays. A loop is assumed to end.
//
// Right in direct style and in continuation-passing style. Must not run after inplace, whose marks hold for
// the order of uses that it saw.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// All of the below, to a fixed point (within a bounded number of rounds).
void simplify(ir::Module& module);

/// Constants computed by the eager handler, exact algebra, branches and loops whose condition is known.
/// Returns whether anything changed, as do the others.
bool fold(ir::Function& function);

/// Pure operations with equal operands are computed once, within what a block can see.
bool cse(ir::Function& function);

/// Removes what no effect and no result of the entry depends on: operations, results of constructs, loop
/// state, parameters and results of functions, functions. Without an entry all functions keep their
/// signatures.
bool eliminate_dead(ir::Module& module);

/// Checks in place of the operations that it would remove and that raise where shapes do not fit. Returns
/// whether there are any.
bool keep_shape_checks(ir::Module& module);

/// An entry that only forwards becomes the function it calls; functions in direct style that are called once
/// are put in place of the call.
bool inline_calls(ir::Module& module);

}  // namespace lantern::passes
