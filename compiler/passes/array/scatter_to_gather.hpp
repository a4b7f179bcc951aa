// scatter_to_gather: loops whose iterations add to neighbouring elements become loops in which each element takes
// its sum.
//
// The adjoint of a stencil scatters: the backward part of b[i] = f(a[i - 1], a[i], a[i + 1]) adds to three
// elements of one array in every iteration. Seen from an element, three iterations add to it, and their sum is stored
// once:
//
//   for (i = lo; i < hi; ++i) { t[i - 1] += x(i); t[i] += y(i); t[i + 1] += z(i); }
//   becomes
//   for (j = lo + 1; j < hi - 1; ++j) t[j] += x(j + 1) + y(j) + z(j - 1);      and both ends
//
// for any number of loops in one another, whatever the tensor's shape: t[i, j] or t[i * n + j]. (Urban and
// van der Smagt, "Automatic differentiation for tensor algebras", 2017, invert the map from iterations to
// elements; Hückelheim, Kukreja, Narayanan, Luporini, Gorman and Hovland, "Automatic differentiation for
// adjoint stencil loops", ICPP 2019, split the index set at the boundaries.) Step by step:
//
// 1. Loop distribution: such additions get loops of their own. What they add is computed there again, from what was
//    there before the loops, branches between numbers included; where that takes longer than to keep it, or what is
//    added comes from a tape, the loops leave it in an array. What the loops compute in any case is no saving.
//    Where only what goes to the element in the middle cannot be computed again, that addition stays. Red-black relaxation
//    reads and sets other elements of the tensor: its loops leave in an array what goes to neighbours.
// 2. Zeros sink into them. An adjoint begins as zeros, and becomes zero where the program overwrites an element. Where
//    such zeros come right before the additions, elements are set instead: to nothing but their sum. Zeros
//    that are stored at the end of an iteration of a loop around are stored at the start of the next one, and once
//    after it; tensors may change places meanwhile. Where the next iteration adds once to each of these elements, it sets
//    them, and no zero is stored. Of zeros + sums + others, the sums are added to the others.
// 3. The additions turn into sums (gathered_nest.hpp).
//
// Sums are reassociated, as accumulation into adjoints may be.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void scatter_to_gather(ir::Module& module);

}  // namespace lantern::passes
