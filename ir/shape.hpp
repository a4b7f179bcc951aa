// Where the shapes of tensors come from: one answer for all who ask.
#pragma once

#include <optional>

#include "lantern/ir/graph.hpp"

namespace lantern::ir {

/// True for an operation whose result is its first operand (of ref_acc: the cell) with something changed.
bool updates_first(const Op& op);

/// Element by element over a tensor: a loop of its own.
bool is_pointwise(const Op& op);

/// An operand whose shape the result has, or null.
Value* shaped_like(const Op& op);

/// True where only the shape of operand `i` counts.
bool only_shape(const Op& op, std::size_t i);

/// Where a size comes from: the size `dimension` of a tensor, or (dimension -1) an integer.
struct Size {
  Value* value = nullptr;
  int dimension = -1;
};
/// Dimension `d` of an operation's result as a size of an operand, or an operand; nothing where it is
/// computed or is the operation's own.
std::optional<Size> size_source(const Op& op, std::size_t d);

/// The notation of an operation (of ref_acc: of what it adds by) for its operands; nothing for others.
struct Notation;
std::optional<Notation> concrete_notation(const Op& op);

}  // namespace lantern::ir
