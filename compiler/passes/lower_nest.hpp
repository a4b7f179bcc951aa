// One nest of loops that computes several tensor operations over one index space.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "lantern/compiler/passes/rewrite.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::passes {

/// An index as a sum of multiples of the nest's indices, by their numbers; mostly one index alone.
struct NestIndex {
  std::vector<std::pair<int, std::int64_t>> terms;
  std::int64_t constant = 0;
  bool is_plain() const { return terms.size() == 1 && terms[0].second == 1 && constant == 0; }
  auto operator<=>(const NestIndex&) const = default;
};
using NestIndices = std::vector<NestIndex>;

/// What is read at a point: an element of a tensor, or a number.
struct Element {
  Value* of = nullptr;
  NestIndices at;  ///< none for a number
  auto operator<=>(const Element&) const = default;
};

/// An operation that the nest computes.
struct NestMember {
  Op* op = nullptr;
  std::vector<Element> reads;  ///< operands of an element-wise operation, factors of a sum of products
  NestIndices result;          ///< where the result lies
  Value* base = nullptr;       ///< what is added to
  bool sums = false;           ///< a sum of products
  bool stored = false;         ///< somebody else reads the result
  Value* memory = nullptr;     ///< of a tensor read here alone, which the result takes over
  std::vector<Value*> sizes;   ///< of the result's dimensions
};

/// The index space, outermost first, and what is computed at its points.
struct Nest {
  std::vector<Value*> sizes;
  std::vector<NestMember> members;
};

/// The results of the members, null where nobody needs one.
std::vector<Value*> emit_nest(ir::Builder& b, const Nest& nest);

/// "r[i] = x[i]": all indices in their order.
NestIndices every_index(std::size_t rank);

}  // namespace lantern::passes
