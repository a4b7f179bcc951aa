// Second partial derivatives of an operation, from the table of first ones.
#pragma once

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/op_derivative.hpp"

namespace lantern::core::ad {

/// d2 op / dxi dxj: the formula of the first derivative by xi, by forward mode in xj. `first_j` is d op /
/// dxj. Empty where it vanishes.
Datum second_partial(const Operation& op, const Datums& primals, const Datum& result, std::size_t i,
                     std::size_t j, const Datum& first_j);

/// What a function with a rule computes, and the derivatives that its rule gives of each floating result: of
/// the shape of one argument, or of two.
struct RulePartials {
  Datums values;
  std::vector<Datums> first;                ///< by result, by variable
  std::vector<std::vector<Datums>> second;  ///< by result, by two variables
};
/// Of a function with scalar results: the first derivatives by the arguments at the places `by`, scalars and
/// vectors, as the rule gives them, and the second ones, by forward mode of the rule. Error, naming `loc`,
/// for other results and arguments.
RulePartials partials_of(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                         const std::vector<std::size_t>& by, const Location& loc);

}  // namespace lantern::core::ad
