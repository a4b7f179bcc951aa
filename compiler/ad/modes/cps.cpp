// Reverse mode in continuation-passing style (Lantern paper, Fig. 7).
//
// The operators take a continuation. In the figure the program is written that way by hand, as in
// explicit_cps.hpp; for programs in direct style shift supplies what they are called with.
#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::ad {

namespace {

class Cps : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "reverse mode in continuation-passing style"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    Step s = step(op, operands);
    if (!differentiable(s)) return s.y;
    return shift<Datum>(prompt_,
                        [this, s = std::move(s)](auto k) { operate(s, [&k](const Datum& y) { k(y); }); });
  }

  Datum input(const Datum& primal) override { return make_variable<Variable>(primal, eager_cell(primal)); }
  void run(const std::function<void()>& program) override {
    reset(prompt_, [&program] { program(); });
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (auto* z = variable_of<Variable>(result)) z->d->add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override {
    return variable_of<Variable>(input)->d->get(loc);
  }

 private:
  /// NumR0: a value, and the mutable adjoint d.
  struct Variable : TaggedBox {
    Variable(std::shared_ptr<Mode> m, Datum p, CellPtr cell)
        : TaggedBox(std::move(m), std::move(p)), d(std::move(cell)) {}
    CellPtr d;
  };

  /// (x op x')(k) = { val y = new NumR0(x.x op x'.x, 0); k(y); x.d += dop/dx * y.d; x'.d += dop/dx' * y.d }
  void operate(const Step& s, const std::function<void(const Datum&)>& k) {
    const CellPtr d = eager_cell(s.y);
    k(make_variable<Variable>(s.y, d));
    if (!d->touched()) return;
    const Datum g = d->get(s.op.loc);
    const StepRule rule = s.rule(g);
    s.backward([&](std::size_t i) {
      if (auto* x = variable_of<Variable>(s.operands[i])) propagate(i, rule, *x->d);
    });
  }

  Data vertex(const Data& operands, const Data& values, Pullback pullback, const Location& loc) override {
    return shift<Data>(prompt_, [this, operands, values, pullback = std::move(pullback), loc](auto k) {
      std::vector<CellPtr> cells;
      k(with_cells<Variable>(values, cells));
      pull_back<Variable>(operands, cells, pullback, loc,
                          [&](Variable& x, const Datum& g) { x.d->add(g, loc); });
    });
  }

  Prompt<void> prompt_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_cps(std::uint64_t tag) { return std::make_shared<Cps>(tag); }

}  // namespace lantern::ad
