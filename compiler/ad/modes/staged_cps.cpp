// Reverse mode in continuation-passing style, staged (Lantern paper, Fig. 7 and 4.1).
#include "lantern/compiler/ad/op_derivative.hpp"
#include "lantern/compiler/ad/staged_reverse.hpp"

namespace lantern::core::ad {

namespace {

/// Operators are called with a continuation, a function of the code. mode::reverse calls it while staging
/// instead, and has continuations only where control flow needs them; `contify` makes the two the same.
class StagedCps : public StagedReverse {
 public:
  using StagedReverse::StagedReverse;
  const char* name() const override { return "reverse mode in continuation-passing style"; }

  // (x op x')(k) = { val y = new NumR0(x.x op x'.x, 0); k(y); x.d += dop/dx * y.d; x'.d += dop/dx' * y.d }
  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    const Datums below = primals(operands);
    bool differentiable = false;
    for (std::size_t i = 0; i < operands.size(); ++i)
      differentiable |= is_active(operands[i]) && carries_derivative(op, i, operands.size());
    const Datum y = perform(op, below);
    if (!differentiable || !y.type().is_differentiable()) return y;
    return shift<Datum>(prompt_, [this, op, y, operands = Datums(operands.begin(), operands.end()), below](auto k) {
      const CellPtr d = make_cell(y, op.loc);
      ir::Op* kont = continuation("k", {y.type()}, op.loc);
      jump(kont->result(), {variable(y, d)}, op.loc);
      inside(kont->blocks[0], op.loc, [&] { k(variables(kont->blocks[0]->params, {y.type()})[0]); });
      const Datum g = d->get(op.loc);
      const FormulaContext rule{op, below, y, g};
      backward_order(op.code, operands.size(), [&](std::size_t i) {
        if (Variable* x = variable_of(operands[i])) propagate(i, rule, *x->cell);
      });
    });
  }
};

}  // namespace

std::shared_ptr<StagedReverse> make_staged_cps(Staging& staging, std::uint64_t tag) {
  return std::make_shared<StagedCps>(staging, tag);
}

}  // namespace lantern::core::ad
