// The forward-mode rule.
#include "lantern/compiler/ad/forward.hpp"

#include "lantern/compiler/ad/derivative_rule.hpp"
#include "lantern/compiler/ad/operands.hpp"

namespace lantern::ad {

Datum Forward::dual(const Datum& primal, const Datum& tangent) {
  return Datum::boxed(new Dual(shared_from_this(), primal, tangent), primal.type());
}

Dual* Forward::dual_of(const Datum& d) const {
  if (!d.is_tagged()) return nullptr;
  auto* v = static_cast<Dual*>(d.box());
  return v->mode.get() == this ? v : nullptr;
}

const Datum& Forward::primal(const Datum& d) const {
  const Dual* v = dual_of(d);
  return v ? v->primal : d;
}

Datum Forward::tangent_of(const Datum& d, const Location& loc) const {
  const Dual* v = dual_of(d);
  return v && !v->tangent.empty() ? v->tangent : zeros_like(d, loc);
}

// Lantern paper, Fig. 5:  NumF(x op y, tangent by the rule), the arithmetic one level down (2.5).
Datum Forward::apply(const Operation& op, std::span<const Datum> operands) {
  const Transient primals(operands, [this](const Datum& d) -> const Datum& { return primal(d); });
  const Transient tangents(operands, [this](const Datum& d) {
    const Dual* v = dual_of(d);
    return v ? v->tangent : Datum();
  });
  const Datum y = perform(op, primals);
  if (!y.type().is_differentiable()) return y;
  const Datum dy = tangent({op, primals, y, Datum()}, tangents);
  return dy.empty() ? y : dual(y, dy);
}

Data Forward::follow(const std::shared_ptr<const Rule>& rule, const Data& arguments, const Location& loc) {
  Data primals, tangents;
  for (const Datum& d : arguments) {
    primals.push_back(primal(d));
    if (d.type().is_differentiable()) tangents.push_back(tangent_of(d, loc));
  }
  auto [results, derivatives] = rule->tangent(primals, tangents);
  require_untagged(*rule, results, *this, loc);
  require_untagged(*rule, derivatives, *this, loc);
  require_derivatives(*rule, results, derivatives, "result", loc);
  std::size_t at = 0;
  for (Datum& y : results)
    if (y.type().is_differentiable()) y = dual(y, derivatives[at++]);
  return results;
}

}  // namespace lantern::ad
