// Forward mode of a formula.
#include "lantern/compiler/ad/modes/second_partial.hpp"

#include "lantern/compiler/ad/forward.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::ad {

Datum second_partial(const Operation& op, const Data& primals, const Datum& result, std::size_t i,
                     std::size_t j, const Datum& first_j) {
  const ir::Formula& f = *ir::derivative(op.code, i, primals.size());
  if (f.kind == ir::Formula::Kind::number) return {};
  const auto forward = std::make_shared<Forward>(++context().tags);
  Data duals = primals;
  duals[j] = forward->dual(primals[j], Datum::number(1.0, primals[j].type()));
  const Datum d = evaluate_formula(f, {op, duals, forward->dual(result, first_j), Datum()});
  const Dual* v = forward->dual_of(d);
  Datum tangent = v ? v->tangent : Datum();
  forward->end();
  return tangent;
}

}  // namespace lantern::ad
