// Second derivative forward mode (thesis, 5.1, listing 5.1): numbers are triples, power series of two orders.
#include "lantern/compiler/ad/modes/effects.hpp"
#include "lantern/compiler/ad/modes/modes.hpp"
#include "lantern/compiler/ad/modes/second_partial.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

const Datum kZero{};  // an empty datum

Datum p(const Datum& a, const Datum& b) { return a.empty() ? b : b.empty() ? a : plus(a, b, {}); }
Datum t(const Datum& a, const Datum& b) {
  return a.empty() || b.empty() ? Datum() : perform({Opcode::mul_, 0, {}}, {a, b});
}
Datum c(double value, const ir::Type& type) { return Datum::number(value, type); }

class SecondDerivative : public Mode {
 public:
  using Mode::Mode;
  const char* name() const override { return "second derivative forward mode"; }
  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    return perform_on<Smooth>(this, Step(*this, op, operands))[0];
  }

  Datum triple(const Datum& x, const Datum& dx, const Datum& ddx) {
    return Datum::boxed(new Triple(*this, x, dx, ddx), x.type());
  }
  const Datum& v(const Datum& d) const { return is_triple(d) ? of(d).primal : d; }
  const Datum& dv(const Datum& d) const { return is_triple(d) ? of(d).dx : kZero; }
  const Datum& ddv(const Datum& d) const { return is_triple(d) ? of(d).ddx : kZero; }

  //   diff <ap2 b (triple x dx ddx) (triple y dy ddy) -> k> =
  //     let r = triple (ap2 b x y)
  //                    (p (t (der2 L b x y) dx) (t (der2 R b x y) dy))
  //                    (p (p (t (dder2 L R b x y) (t dx dy))
  //                          (p (t (t 0.5 (dder2 L L b x y)) (t dx dx)) (t (t 0.5 (dder2 R R b x y)) (t dy
  //                          dy))))
  //                       (p (t (der2 L b x y) ddx) (t (der2 R b x y) ddy))) in
  //     diff (k r)
  // and so for any number of operands. (For one, the listing has dder1 u x * ddx as the third component; it
  // is der1 u x * ddx + 0.5 dder1 u x * dx * dx.)
  Datums diff(const std::function<Datums()>& program) {
    return handle([&program] { return program(); }, resuming<Smooth>(this, [this](const Step& b) {
                    const Datum& r = b.values()[0];
                    if (!r.type().is_differentiable()) return Datums{r};
                    if (!b.has_partials())
                      raise_at(b.loc(), "second_derivative: expected operations on scalars, got " +
                                            std::string(ir::info(b.code()).name) + "; use taylor<2>(f)");
                    return Datums{triple(r, first_order(b), second_order(b))};
                  }));
  }

 private:
  struct Triple : TaggedBox {
    Triple(Mode& m, Datum x, Datum first, Datum second)
        : TaggedBox(m, std::move(x)), dx(std::move(first)), ddx(std::move(second)) {}
    Datum dx, ddx;  // empty: zero
  };
  bool is_triple(const Datum& d) const { return d.is_tagged() && of(d).mode.get() == this; }
  static const Triple& of(const Datum& d) { return *static_cast<const Triple*>(d.box()); }

  Datum first_order(const Step& b) const {
    Datum sum;
    for (std::size_t i = 0; i < b.operands().size(); ++i)
      if (b.depends_on(i)) sum = p(sum, t(b.partial(i), dv(b.operands()[i])));
    return sum;
  }
  Datum second_order(const Step& b) const {
    const Datum& r = b.values()[0];
    Datums x;
    for (const Datum& d : b.operands()) x.push_back(b.primal(d));
    Datum sum;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (!b.depends_on(i)) continue;
      const Datum& xi = b.operands()[i];
      for (std::size_t j = 0; j <= i; ++j) {
        if (!b.depends_on(j)) continue;
        const Datum dd = second_partial(b.op(), x, r, i, j, b.partial(j));
        sum = p(sum, t(i == j ? t(c(0.5, r.type()), dd) : dd, t(dv(xi), dv(b.operands()[j]))));
      }
      sum = p(sum, t(b.partial(i), ddv(xi)));
    }
    return sum;
  }
};

}  // namespace

//   dd f x = t (c 2.0) (ddv (diff (f (triple x (c 1.0) (c 0.0)))))
std::vector<Datums> second_derivative(const Program& program, const Datums& arguments, const Active& active,
                                      const Datums& tangents, const Location& loc) {
  require_tangents("second_derivative", arguments, active, tangents, loc);
  const Evaluation evaluation;
  const auto mode = std::make_shared<SecondDerivative>(fresh_number());
  const Ending ending{*mode};
  Datums tagged = arguments;
  std::size_t next = 0;
  for (std::size_t i = 0; i < tagged.size(); ++i)
    if (active[i]) tagged[i] = mode->triple(arguments[i], tangents[next++], kZero);
  std::vector<Datums> out(3);
  for (const Datum& y : mode->diff([&] { return program.run(tagged); })) {
    const auto order = [&](const Datum& d) { return d.empty() ? Datum::zero(y.type()) : d; };
    out[0].push_back(mode->v(y));
    out[1].push_back(order(mode->dv(y)));
    out[2].push_back(order(t(c(2.0, y.type()), mode->ddv(y))));
  }
  return out;
}

}  // namespace lantern::core::ad
