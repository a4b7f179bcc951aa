// contract: a product that nothing but a sum asks for is computed with it, rounded once.
//
//   p = x * y; s = p + z      becomes   s = fma(x, y, z)
//
// Processors have an instruction for that, twice as fast as two. Which sums are contracted is decided here,
// by the graph alone, and compilers are told to leave the others as they are: were it theirs, it would hang
// on which operations stand in one expression of the text, and with that on the lengths of names.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void contract(ir::Module& module);

}  // namespace lantern::passes
