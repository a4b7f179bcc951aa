// store_forwarding: several updates of one element in a block become one.
//
// The adjoint of `set(a, i, v)` reads the adjoint's element i, makes it zero, and what came from a[i] is then
// added to it again; what is used twice is added to twice. Each of these is a load and a store of the same
// element. Here the sum is made first:
//
//   b = set(a, i, x); c = add_at(b, i, y)       becomes   c = set(a, i, x + y)
//   b = add_at(a, i, x); c = add_at(b, i, y)    becomes   c = add_at(a, i, x + y)
//   b = set(a, i, x); c = set(b, i, y)          becomes   c = set(a, i, y)
//   c = set(a, i, x + get(a, i))                becomes   c = add_at(a, i, x)
//
// also where other elements are updated in between, and where b[i] is read: then that is x, or a[i] + x. Sums
// are reassociated, as accumulation into adjoints may be, and begin with what is added to 0 first (0 + x is
// x, but for the sign of zero); everything else is exact. What is set to what it is stays: set(a, i, get(a,
// i)) is a.
//
// Before that, writes of both sides of a branch to one element become one behind it (branch_writes.hpp). Afterwards, in
// backward parts, what is set comes before what is added to other elements: iterations that each replace an element,
// and add to one that an earlier iteration has replaced, then are in an order in which lanes may run them.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void store_forwarding(ir::Module& module);

/// In a loop as staged, before derivatives: what is read of an element that was set before in the same iteration
/// is what was set. The adjoint does not go by way of the element then, and nothing of it is kept.
void forward_stored(ir::Op* loop);

}  // namespace lantern::passes
