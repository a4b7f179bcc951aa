// Recurrences: the operations whose results the next iteration of a loop waits for.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

/// True where an operation's result is an operand of the same operation in a later iteration of the loop
/// around, by a number that the loop carries, or by an element at a constant distance: best = min(best, x);
/// d[j] = e + min(d[j - 1], x). (A cycle of true dependences: Allen and Kennedy, Optimizing Compilers for
/// Modern Architectures, 2001, 2.2.) Asked of operations in the body itself.
bool is_recurrence(const ir::Op& op);

}  // namespace lantern::passes
