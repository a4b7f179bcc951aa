// The operators of Fig. 7, staged.
#include "lantern/compiler/ad/modes/staged_cps.hpp"

#include "lantern/compiler/ad/op_derivative.hpp"

namespace lantern::core::ad {

// (x op x')(k) = { val y = new NumR0(x.x op x'.x, 0); k(y); x.d += dop/dx * y.d; x'.d += dop/dx' * y.d }
Datum StagedCps::apply(const Operation& op, std::span<const Datum> operands) {
  Datums primals;
  bool differentiable = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    primals.push_back(primal(operands[i]));
    differentiable |= is_active(operands[i]) && carries_derivative(op, i, operands.size());
  }
  const Datum y = perform(op, primals);
  if (!differentiable || !y.type().is_differentiable()) return y;
  return shift<Datum>(prompt_, [this, op, y, operands = Datums(operands.begin(), operands.end()),
                                primals = std::move(primals)](auto k) {
    const CellPtr d = make_cell(y, op.loc);
    ir::Op* kont = continuation("k", {y.type()}, op.loc);
    jump(kont->result(), {variable(y, d)}, op.loc);
    inside(kont->blocks[0], [&] {
      k(variables(kont->blocks[0]->params, {y.type()})[0]);
      close(op.loc);
    });
    const Datum g = d->get(op.loc);
    const FormulaContext rule{op, primals, y, g};
    const bool last_first = !ir::info(op.code).elementwise;  // see Step::backward
    for (std::size_t n = operands.size(), j = 0; j < n; ++j) {
      const std::size_t i = last_first ? n - 1 - j : j;
      if (Variable* x = variable_of(operands[i])) propagate(i, rule, *x->cell);
    }
  });
}

}  // namespace lantern::core::ad
