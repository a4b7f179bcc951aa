// Stateful reverse mode (thesis, 4.2, listing 4.5).
#pragma once

#include "lantern/compiler/ad/modes/eager_reverse.hpp"
#include "lantern/compiler/ad/modes/effects.hpp"

namespace lantern::core::ad {

/// Numbers with a mutable derivative, and the handler of their steps. Other modes with such numbers reverse
/// the program in another way.
class StatefulReverse : public EagerReverse {
 public:
  using EagerReverse::EagerReverse;
  const char* name() const override { return "stateful reverse mode"; }

  Datum input(const Datum& primal) override { return prop(primal); }
  void run(const std::function<void()>& program) override;
  void seed(const Datum& result, const Datum& g, const Location& loc) override;
  Datum adjoint(const Datum& input, const Location& loc) override { return deriv(input, loc).get(loc); }

 protected:
  /// data Prop X = prop X (Ref X)
  struct Prop : TaggedBox {
    Prop(Mode& m, Datum p, bool f) : TaggedBox(m, std::move(p)), d(primal), forgotten(f) {}
    struct Derivative final : EagerCell {
      explicit Derivative(const Datum& p) : of(p) {}
      const Datum& like() const override { return of; }
      const Datum& of;
    } d;
    bool forgotten;  ///< made by `evaluate`: there is no derivative
  };
  Datum prop(const Datum& value) { return make_number<Prop>(value, false); }
  Datums props(const Step& b) {
    require_stack(b);
    return numbers(b.values(), [this](const Datum& y) { return prop(y); });
  }
  /// Error: a number that was computed for its value only.
  Cell& deriv(const Datum& x, const Location& loc) const;

  /// dx := p @dx (t (der b x) @(deriv r)), for each operand x of the step
  void accumulate(const Step& b, const Datums& r) const;

  //   reverse <ap b (prop x dx) ... -> k> =
  //     let r = prop (ap b x ...) (new 0) in
  //     reverse (k r);                              -- the rest of the program
  //     dx := p @dx (t (der b x ...) @(deriv r)); ...
  auto reverse_clause() {
    return on<Smooth>(this, [this](const Step& b, auto k) {
      const Datums r = props(b);
      k(r);
      accumulate(b, r);
    });
  }

  /// evaluatet (listings 5.2 and 5.4): what `part` gives, as numbers of which only the value is known.
  Datums evaluate(const Part& part, const Datums& arguments);
  /// let res = evaluatet s p! in prop (fwd res) (new 0): the same as numbers whose derivative is yet to come.
  Datums evaluated(const Part& part, const Datums& arguments) {
    Datums r;
    for (const Datum& res : evaluate(part, arguments)) r.push_back(number_of(res) ? prop(primal(res)) : res);
    return r;
  }
  /// (deriv p!) := @(deriv r): runs a part for its derivative, from those of the results that it had.
  void seed_again(const Part& part, const Datums& arguments, const Datums& r, const Location& loc);
};

}  // namespace lantern::core::ad
