// fixed_arrays: static shapes for small arrays that a program fills with a constant number of elements, after the
// loops over them are unrolled.
//
//   r = fill 0, 9 : f64[?]                                 r = fill 0, 9 : f64[9]
//   for i < 3: for k < 3: r[i * 3 + k] = x(i, k)           r[0] = x(0, 0); r[1] = x(0, 1); ...
//
// Done before derivatives are made, so that scalar_replacement makes numbers of the array, of its adjoint and of what
// the tape holds of it.
//
// Requires: every value that may hold the array holds it alone, and all indices are constants in each iteration of
// loops whose first and last iterations are constants, or are so in each iteration of loops around them (for k < i).
// Ensures: the same accesses in the same order. Cost: a thousand operations at most for each nest.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void fixed_arrays(ir::Function& f);

}  // namespace lantern::passes
