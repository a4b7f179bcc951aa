// Functions with rules in the eager reverse modes.
#include "lantern/compiler/ad/modes/eager_reverse.hpp"

namespace lantern::core::ad {

Datums EagerReverse::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                          const Location& loc) {
  Datums primals;
  for (const Datum& d : arguments) primals.push_back(primal(d));
  const auto [values, residuals] = rule->forward(primals);
  require_untagged(*rule, values, *this, loc);
  require_untagged(*rule, residuals, *this, loc);
  if (floating(values).empty()) return values;
  const auto pullback = [this, rule, primals, residuals, loc](const Datums& cotangents) {
    const Datums adjoints = rule->backward(residuals, cotangents);
    require_untagged(*rule, adjoints, *this, loc);
    require_derivatives(*rule, primals, adjoints, "argument", loc);
    Datums shares;
    std::size_t at = 0;
    for (const Datum& x : primals) shares.push_back(x.type().is_differentiable() ? adjoints[at++] : Datum());
    return shares;
  };
  return vertex(arguments, values, pullback, loc);
}

}  // namespace lantern::core::ad
