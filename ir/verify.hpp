// The verifier: what graph.hpp says in words, checked. It runs after every pass in debug builds.
//
// Structure      links between operations, blocks, values and functions agree; every block ends with its only yield;
//                functions have names of their own
// Scope          operands are defined before their use, in the same block or one around it
// Types          results are what infer_type says, yields and arguments what their construct or callee says; what
//                comes from a tape is what goes onto it
// Attributes     an operation carries what its kind knows, within its range, and nothing else
// Paths          on every path through a `cps` function, or through a `fun` in one, exactly one continuation is
//                called, once; elsewhere at most one. A call is a jump, a call whose last argument is a
//                continuation, or a branch without results both of whose blocks do
// Cells          made by ref_new, used by the ref_ operations only or handed to jump, call and closure; read by
//                their creator: not by a continuation or function that was given the cell
// Continuations  called, or handed to jump and closure, or the last argument of a call; never data
//
// What holds in some phases only is a form (form.hpp).
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// Throws an InternalError naming the function and the printed operation. Linear time, no recursion.
void verify(const Module& module);
void verify(const Function& function);

}  // namespace lantern::ir
