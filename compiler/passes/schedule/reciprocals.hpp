// reciprocals: a quotient that nothing but a product with the reciprocal of its divisor asks for is a product.
//
//   r = x / y; q = 1 / y; s = r * q      becomes      q = 1 / y; r = x * q; s = r * q
//
// The derivative of x / y in y is -r * q. Where r is computed again for it, that is one division of two, and a
// division takes as long as many products. Where y is so large or small that q is 0 or infinite, s is as well, before and
// after. The product is rounded once more than the quotient. (Strength reduction: Allen and Cocke, "A catalogue of
// optimizing transformations", 1971.)
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void reciprocals(ir::Module& module);

}  // namespace lantern::passes
