// Steps, and the protocol of a gradient, in the eager reverse modes.
#include "lantern/compiler/ad/modes/eager_reverse.hpp"

#include "lantern/compiler/ad/modes/effects.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

Datum EagerReverse::apply(const Operation& op, std::span<const Datum> operands) {
  Step b(*this, op, operands);
  return b.differentiable() ? handle_step(std::move(b))[0] : b.values()[0];
}

Datums EagerReverse::follow(const std::shared_ptr<const Rule>& rule, const Datums& arguments,
                            const Location& loc) {
  Step b(*this, rule, arguments, loc);
  return b.differentiable() ? handle_step(std::move(b)) : Datums(b.values().begin(), b.values().end());
}

Datums EagerReverse::handle_step(Step b) { return perform_on<Smooth>(this, std::move(b)); }

// grad f x =  let z = prop x (new 0) in  reverse (deriv (f z) := 1);  @(deriv z)
Datums gradient_by(EagerReverse& mode, const Program& program, const Datums& arguments,
                   const Active& active, bool value, const Location& loc) {
  const Evaluation evaluation;
  const Ending ending{mode};
  Datums inputs, out;
  const Datums tagged = with_active(
      arguments, active, [&](const Datum& x) { return inputs.emplace_back(mode.input(x)); });
  mode.run([&] {
    const Datums results = program.run(tagged);
    require_scalar(types_of(results), loc);
    if (value && out.empty()) out.push_back(mode.primal(results[0]));
    mode.seed(results[0], Datum::number(1.0, results[0].type()), loc);
  });
  for (const Datum& x : inputs) out.push_back(mode.adjoint(x, loc));
  return out;
}

void EagerReverse::require_stack(const Step& b) const {
  if (control::stack_exhausted())
    raise_at(b.loc(), std::string(name()) +
                          ": expected a program whose steps have room on the stack, where what follows each of "
                          "them waits for it, got a longer one; write grad(f), which keeps them in a list");
}

}  // namespace lantern::core::ad
