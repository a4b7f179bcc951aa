// One nest of loops that computes several tensor operations over one index space.
#pragma once

#include <compare>
#include <optional>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/notation.hpp"

namespace lantern::passes {

/// An index as a sum of multiples of the nest's indices, by their numbers; mostly one index alone.
struct NestIndex {
  std::vector<std::pair<int, std::int64_t>> terms;
  std::int64_t constant = 0;
  bool inside = false;  ///< of the dimension, as the operation says that has it; letters alone go through all of it
  bool may_lie_outside() const { return !is_plain() && !inside; }
  bool is_plain() const { return terms.size() == 1 && terms[0].second == 1 && constant == 0; }
  bool is_whole_dimension() const { return is_plain() && !inside; }
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
  Value* base = nullptr;       ///< what is added to; maybe what a member before has added to
  bool sums = false;           ///< a sum of products
  bool stored = false;         ///< somebody else reads the result
  Value* memory = nullptr;     ///< of a tensor read here alone, which the result takes over
  std::vector<Value*> sizes;   ///< of the result's dimensions
  bool in_order = false;       ///< what is added to an element is added in the order of the loops
};

/// The index space, outermost first, and what is computed at its points.
struct LoweredNest {
  std::vector<Value*> sizes;
  std::vector<NestMember> members;
};

/// The results of the members, null where nothing needs one.
std::vector<Value*> emit_nest(ir::Builder& b, const LoweredNest& nest);

/// "r[i] = x[i]": all indices in their order.
NestIndices every_index(std::size_t rank);

/// The one factor of an operation that only moves elements (broadcast, transpose, ...): each element of the
/// result is one of the operand's.
std::optional<std::size_t> moved_operand(const ir::Op& op);

/// The order of a sum's indices: innermost the one along which most operands lie in memory, before it those
/// summed over, outermost those of the result.
std::string loop_order(const ir::Notation& n);

/// What a sum of products adds to its result, of the tensors that it reads in the end: "ij+=ik,jk".
ir::Notation as_accumulation(const NestMember& m);

}  // namespace lantern::passes
