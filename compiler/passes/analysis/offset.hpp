// Indices as a base value and a constant offset, which tell whether two accesses alias.
#pragma once

#include "lantern/ir/graph.hpp"

namespace lantern::passes {

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
bool differ_by_offset(const ir::Op& a, const ir::Op& b);

}  // namespace lantern::passes
