// Inline expansion: functions that work on tensors move to their calls.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// Inline expansion for a GPU (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, chapter 11):
/// a function that works on tensors is a sequence of launches, and kernels join within a function alone. So
/// each call in straight-line code is replaced by the body of the function, callees first:
///
///   y = call @layer_fwd(w, x)                  ... layer with w, x ...
///   z = call @layer_fwd(v, y)       becomes    ... layer with v, y ...
///   dy = call @layer_bwd(v, dz)                ... its backward part with what layer has made ...
///
/// What the forward part pushed to a tape and the backward part popped is handed on as a value, where all
/// pushes and pops of the tape are in one block. A function that calls itself stays, and so does one whose
/// expansion would make its caller long. Kernels that are equal afterwards are compiled once
/// (codegen/kernel_texts.hpp).
///
/// Requires direct style, and whole tensors: no pass has lowered them to loops yet.
void inline_expansion(ir::Module& module);

}  // namespace lantern::passes
