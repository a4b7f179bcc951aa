// Reverse mode in continuation-passing style (Lantern paper, Fig. 7).
//
// The operators take a continuation. In the figure the program is written that way by hand, as in
// explicit_cps.hpp; for programs in direct style shift supplies what they are called with.
#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::core::ad {

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

  Datum input(const Datum& primal) override { return make_variable<NumR0>(primal); }
  void run(const std::function<void()>& program) override {
    reset(prompt_, [&program] { program(); });
  }
  void seed(const Datum& result, const Datum& g, const Location& loc) override {
    if (Cell* d = cell_of(result)) d->add(g, loc);
  }
  Datum adjoint(const Datum& input, const Location& loc) override { return cell_of(input)->get(loc); }

 private:
  /// A value, and the mutable adjoint d.
  using NumR0 = WithAdjoint;

  /// (x op x')(k) = { val y = new NumR0(x.x op x'.x, 0); k(y); x.d += dop/dx * y.d; x'.d += dop/dx' * y.d }
  void operate(const Step& s, const std::function<void(const Datum&)>& k) {
    const Datum y = make_variable<NumR0>(s.y);
    k(y);
    Cell& d = *cell_of(y);
    if (d.touched()) s.propagate_to([this](const Datum& x) { return cell_of(x); }, d.get(s.op.loc));
  }

  Datums vertex(const Datums& operands, const Datums& values, Pullback pullback, const Location& loc) override {
    return shift<Datums>(prompt_, [this, operands, values, pullback = std::move(pullback), loc](auto k) {
      Datums made;
      k(with_adjoints(values, made));
      pull_back(operands, made, pullback, loc);
    });
  }

  Prompt<void> prompt_;
};

}  // namespace

std::shared_ptr<EagerReverse> make_cps(std::uint64_t tag) { return std::make_shared<Cps>(tag); }

}  // namespace lantern::core::ad
