// outline: a long block becomes a sequence of calls of functions of a few hundred operations each.
//
// What compilers spend on a function grows faster than the function: programs whose loops ran while they were
// staged would take minutes. Numbers that a later piece asks for wait in an array, the frame; tensors,
// integers and the like are handed on as parameters and results.
//
//   %a = sin %x                       @f_part1(%x, %frame):  set frame, 0, sin(x)
//   ... thousands of operations       ...
//   %z = mul %a, %y                   @f_part9(%y, %frame):  mul(get(frame, 0), y)
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// The frame is written in place, which array passes would not understand: they run before. `kernels`: parallel loops are
/// kernels of a GPU, whose blocks of threads share what a body does; they stay whole, and there is no frame.
void outline(ir::Module& module, bool kernels = false);

}  // namespace lantern::passes
