// Second derivative forward mode (thesis, 5.1, listing 5.1): numbers are triples, power series of two orders.
#include "lantern/compiler/ad/modes/effects.hpp"
#include "lantern/compiler/ad/modes/modes.hpp"
#include "lantern/compiler/ad/modes/second_partial.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::ad {

namespace {

const Datum kZero{};  // an empty datum

Datum p(const Datum& a, const Datum& b) { return sum(a, b, {}); }
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
    return make_number<Triple>(x, dx, ddx);
  }
  const Datum& dv(const Datum& d) const { return number_of(d) ? number_of<Triple>(d)->dx : kZero; }
  const Datum& ddv(const Datum& d) const { return number_of(d) ? number_of<Triple>(d)->ddx : kZero; }

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
                    return Datums{of_partials(b)};
                  }));
  }

 private:
  struct Triple : TaggedBox {
    Triple(Mode& m, Datum x, Datum first, Datum second)
        : TaggedBox(m, std::move(x)), dx(std::move(first)), ddx(std::move(second)) {}
    Datum dx, ddx;  // empty: zero
  };

  Datum of_partials(const Step& b) {
    const Datum& r = b.values()[0];
    std::vector<std::optional<Name>> places(b.operands().size());
    for (std::size_t i = 0; i < places.size(); ++i)
      if (b.depends_on(i)) places[i] = i;
    const Partials partials = partials_of(b.op(), primals(b.operands()), r, places);
    Datum dr, ddr;
    for (std::size_t i = 0; i < partials.by.size(); ++i) {
      const Datum& x = b.operands()[partials.by[i]];
      dr = p(dr, t(partials.first[i], dv(x)));
      for (std::size_t j = 0; j <= i; ++j) {
        const Datum& dd = partials.second[i][j];
        ddr = p(ddr, t(i == j ? t(c(0.5, r.type()), dd) : dd, t(dv(x), dv(b.operands()[partials.by[j]]))));
      }
      ddr = p(ddr, t(partials.first[i], ddv(x)));
    }
    return triple(r, dr, ddr);
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
  const Datums tagged = with_active(arguments, active, [&, dx = tangents.begin()](const Datum& x) mutable {
    return mode->triple(x, *dx++, kZero);
  });
  std::vector<Datums> out(3);
  for (const Datum& y : mode->diff([&] { return program.run(tagged); })) {
    const auto order = [&](const Datum& d) { return d.empty() ? Datum::zero(y.type()) : d; };
    out[0].push_back(mode->primal(y));
    out[1].push_back(order(mode->dv(y)));
    out[2].push_back(order(t(c(2.0, y.type()), mode->ddv(y))));
  }
  return out;
}

}  // namespace lantern::core::ad
