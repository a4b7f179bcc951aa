// The forward-mode rule.
#include "lantern/compiler/ad/forward.hpp"

#include "lantern/compiler/ad/op_derivative.hpp"
#include "lantern/compiler/ad/double_step.hpp"
#include "lantern/compiler/ad/kept_operands.hpp"

namespace lantern::core::ad {

Datum Forward::tangent_of(const Datum& d, const Location& loc) const {
  const Dual* v = dual_of(d);
  return v && !v->tangent.empty() ? v->tangent : zeros_like(d, loc);
}

// Lantern paper, Fig. 5:  NumF(x op y, tangent by the rule), the arithmetic one level down (2.5).
Datum Forward::apply(const Operation& op, std::span<const Datum> operands) {
  if (const Datum y = on_numbers(op, operands); !y.empty()) return y;
  const Transient primals(operands, [this](const Datum& d) -> const Datum& { return primal(d); });
  const Transient tangents(operands, [this](const Datum& d) {
    const Dual* v = dual_of(d);
    return v ? v->tangent : Datum();
  });
  const Datum y = perform(op, primals);
  if (!y.type().is_differentiable()) return y;
  const Transient flows(operands, [this](const Datum& d) {
    const Dual* v = dual_of(d);
    return v ? v->flow() : Datum();
  });
  Datum flow;
  const Datum dy = tangent({op, primals, y, Datum()}, tangents, flows, flow);
  return dy.empty() ? y : dual(y, dy, flow);
}

/// The same for numbers whose tangents are numbers; empty where they are not.
Datum Forward::on_numbers(const Operation& op, std::span<const Datum> operands) {
  std::array<const Datum*, 3> tangents{};
  std::size_t at = 0;
  bool plain = true;
  DoubleStep step;
  const bool done =
      operands.size() <= tangents.size() && step.perform(op, operands, [&](const Datum& d) -> const Datum& {
        const Dual* v = dual_of(d);
        if (v && !v->tangent.empty()) {
          tangents[at] = &v->tangent;
          plain &= is_double(v->tangent);
        }
        ++at;
        return v ? v->primal : d;
      });
  if (!done || !plain) return {};
  double dy = 0;
  bool any = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!tangents[i] || !step.carries(i)) continue;
    const double term = step.partial(i) * tangents[i]->f();
    dy = any ? dy + term : term;
    any = true;
  }
  return any ? dual(step.value(), Datum::number(dy, ir::Type(ir::Kind::f64))) : step.value();
}

Datums Forward::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments, const Location& loc) {
  Datums tangents;
  for (const Datum& d : floating(arguments)) tangents.push_back(tangent_of(d, loc));
  auto [results, derivatives] = rule->tangent(primals(arguments), tangents);
  require_untagged(*rule, results, *this, loc);
  require_untagged(*rule, derivatives, *this, loc);
  require_derivatives(*rule, results, derivatives, "result", loc);
  std::size_t at = 0;
  for (Datum& y : results)
    if (y.type().is_differentiable()) y = dual(y, derivatives[at++]);
  return results;
}

}  // namespace lantern::core::ad
