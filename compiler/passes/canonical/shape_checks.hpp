// The shapes that an operation asks of its operands, checked without the operation.
#pragma once

#include <tuple>
#include <vector>

#include "lantern/compiler/passes/support/rewrite.hpp"
#include "lantern/ir/shape.hpp"

namespace lantern::passes {

/// Two sizes that are to be equal: else the operation raises.
struct EqualSizes {
  ir::Size a, b;
  std::size_t a_operand = 0, b_operand = 0;  ///< of which operands
};

/// Those of which the types alone do not show that they are equal.
std::vector<EqualSizes> equal_sizes(const Op& op);

/// Puts checks of these sizes before operations nothing needs the values of, which are about to be removed:
/// the derivative of a product of vectors, say, does not need the product, but fails where the product does.
/// In front of counting loops where sizes do not change in them.
///
/// `ops`: of one function, in the order in which they run. Returns whether anything was added.
bool keep_shape_checks(ir::Function& function, const std::vector<Op*>& ops);
/// The same of operations that are no part of a derivative: the message is about what the user has written.
bool keep_written_shape_checks(ir::Function& function, std::vector<Op*> ops);

}  // namespace lantern::passes
