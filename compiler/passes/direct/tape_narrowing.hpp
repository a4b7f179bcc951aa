// tape_narrowing: the tape holds the outcomes of comparisons where the backward part uses saved numbers for
// nothing else, as it does after min, max and abs.
//
//   forward   push[1] %a                %c = le %a, %b
//             push[2] %b                push[3] %c
//   backward  %b1 = pop[2]              %c1 = pop[3]
//             %a1 = pop[1]
//             %c1 = le %a1, %b1
//
// A number that is made once in a call, and that the backward part sees, is on no tape: all that is popped is that.
//
// Requires: direct style, after common subexpressions became one. Ensures: fewer bytes on the tape, and the
// same bits in every comparison. Source: the minimum cut between forward and backward part (Griewank and
// Walther, "Evaluating Derivatives", 2008, 4.3), here of a graph in which all sources are popped numbers.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void tape_narrowing(ir::Module& module);

}  // namespace lantern::passes
