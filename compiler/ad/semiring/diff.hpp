// diff : exp -> exp, four times over (de Vilhena and Pottier, sections 3 and 5).
//
// Specification (Statement 2.1): if e represents E, then diff(e) represents E', the derivative of E. Each is
// a function of expressions and knows nothing of where its result will be evaluated; so they work over every
// commutative semiring, and on each other's results.
#pragma once

#include "lantern/compiler/ad/semiring/expression.hpp"

namespace lantern::core::semiring {

/// Forward mode: evaluation in the semiring of dual numbers (Fig. 4).
Expression diff_by_dual_numbers(const Expression& e);

/// Reverse mode with an explicit stack of the operations performed (Fig. 5).
Expression diff_by_stack(const Expression& e);

/// Reverse mode with effect handlers (Fig. 9): add and mul are effects, and the handler's frames are the
/// stack.
Expression diff_by_handlers(const Expression& e);

/// Reverse mode with shift and reset (Lantern paper, Fig. 8).
Expression diff_by_shift(const Expression& e);

}  // namespace lantern::core::semiring
