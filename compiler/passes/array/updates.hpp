// updates: several updates of one element in a block become one.
//
// The adjoint of `set(a, i, v)` reads the adjoint's element i, makes it zero, and what came from a[i] is then
// added to it again; what is used twice is added to twice. Each of these is a load and a store of the same
// element. Here the sum is made first:
//
//   b = set(a, i, x); c = add_at(b, i, y)       becomes   c = set(a, i, x + y)
//   b = add_at(a, i, x); c = add_at(b, i, y)    becomes   c = add_at(a, i, x + y)
//   b = set(a, i, x); c = set(b, i, y)          becomes   c = set(a, i, y)
//
// also where other elements are updated in between, and where b[i] is read: then that is x, or a[i] + x. Sums
// are reassociated, as accumulation into adjoints may be, and begin with what is added to 0 first (0 + x is x, but
// for the sign of zero); everything else is exact. What is set to what it is stays: set(a, i, get(a, i)) is a.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

void updates(ir::Module& module);

/// An index as a value, or none, with a constant added. Integers wrap: so do sums of constants.
struct Offset {
  const ir::Value* base = nullptr;
  std::uint64_t by = 0;
  bool operator==(const Offset&) const = default;
};
Offset offset(const ir::Value* v);

/// True where two operations that access elements (get, set, add_at) have the same indices.
bool same_element(const ir::Op& a, const ir::Op& b);
/// True where they certainly access different elements of tensors with equal shapes: in one dimension the
/// indices are one integer with different constants added.
bool apart(const ir::Op& a, const ir::Op& b);

}  // namespace lantern::passes
