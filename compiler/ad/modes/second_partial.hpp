// Second partial derivatives of an operation, from the table of first ones.
#pragma once

#include "lantern/compiler/ad/derivative_rule.hpp"

namespace lantern::ad {

/// d2 op / dxi dxj: the formula of the first derivative by xi, by forward mode in xj. `first_j` is d op /
/// dxj. Empty where it vanishes.
Datum second_partial(const Operation& op, const Data& primals, const Datum& result, std::size_t i,
                     std::size_t j, const Datum& first_j);

}  // namespace lantern::ad
