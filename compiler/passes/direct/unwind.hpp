// unwind: continuation-passing style to direct style, with the tape as the defunctionalised continuation.
//
// Every continuation is called exactly once, so a block `A; T; P` (operations, the call that runs the rest, and
// what comes after it) splits into a forward part F = A + F(T) and a backward part W = W(T) + P. What W needs of
// F is the frame. Adjoint cells become values: created as zero, only added to, read once.
//
//   straight code   F then W in one block; the frame is what is visible
//   branch + join   F: a branch whose results are the join's parameters (plus the frame of each side);
//                   then the join's body.        W: the join's, then the mirrored branch
//   loop            F: a loop that counts its iterations and pushes one frame per iteration; then the exit's body.
//                   W: the exit's, then a loop that runs as often, pops the frame and passes the adjoint of the
//                   state on (the callee's cell is this iteration's adjoint input; the own cell starts at zero)
//   function        two functions: fwd leaves its frame on the tape, bwd pops it. What every recursive call
//                   passes on unchanged is an argument of both and is not saved
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Turns a derivative unit into direct style, in place, with the functions it calls in continuation-passing
/// style. Does nothing to a function that is in direct style already. Of a `last` derivative, which is not to be
/// differentiated again, long loops are cut so that their frames stay in the cache.
void unwind(ir::Function& unit, bool last = false);

/// True where a function holds continuations or cells.
bool in_cps(const ir::Function& f);

/// All units of the module.
void unwind(ir::Module& module);

}  // namespace lantern::passes
