// Operations on small tensors, element by element.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"

namespace lantern::passes {

/// The elements of a value in row-major order; of a number itself alone.
using ElementsOf = std::function<std::vector<Value*>(Value*)>;

/// True for tensors of a known shape with so few elements that each may be a value of its own.
bool is_small(const ir::Type& type);
/// How many elements a small tensor has, or 1 for a number.
std::size_t element_count(const ir::Type& type);

/// How many operations on numbers represent one on tensors, or nothing where there are none: a shape that is
/// not known, an index that is not a constant of the right range, an operation that needs all elements in
/// memory. `ref_acc` counts as the accumulating operation it names.
std::optional<std::size_t> element_form_cost(const Op& op);

/// True for `take` and `add_take` of a small row of a tensor that stays in memory: as many accesses to elements,
/// wherever the row lies, as the row has elements.
bool is_row_access(const Op& op);

/// Emits these operations; the elements of the result. Of `ref_acc` what each element of the cell has added
/// to it, null where that is nothing.
std::vector<Value*> element_form(ir::Builder& b, const Op& op, const ElementsOf& elements);

}  // namespace lantern::passes
