// Functions with rules in the eager reverse modes.
#include "lantern/compiler/ad/modes/eager_reverse.hpp"

namespace lantern::ad {

Data EagerReverse::follow(const std::shared_ptr<const Rule>& rule, const Data& arguments,
                          const Location& loc) {
  Data primals;
  for (const Datum& d : arguments) primals.push_back(primal(d));
  const auto [values, residuals] = rule->forward(primals);
  require_untagged(*rule, values, *this, loc);
  require_untagged(*rule, residuals, *this, loc);
  if (floating(values).empty()) return values;
  const auto pullback = [this, rule, primals, residuals, loc](const Data& cotangents) {
    const Data adjoints = rule->backward(residuals, cotangents);
    require_untagged(*rule, adjoints, *this, loc);
    require_derivatives(*rule, primals, adjoints, "argument", loc);
    Data shares;
    std::size_t at = 0;
    for (const Datum& x : primals) shares.push_back(x.type().is_differentiable() ? adjoints[at++] : Datum());
    return shares;
  };
  return vertex(arguments, values, pullback, loc);
}

}  // namespace lantern::ad
