// Forward mode (Lantern paper, Fig. 4).
//
//   Transform(f) = λx. let ŷ = @ D[f] (x, 1) in y'
#include "lantern/compiler/calculus/notation.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::calculus {

using namespace core;

namespace {

class Forward : Notation {
 public:
  using Notation::Notation;

  Term transform(const Term& f) {
    return lambda_of("x", [&](const Term& x) {
      return let_hat("y", apply(D(f), pair(x, 1)), [](const Hat& y) { return y.prime; });
    });
  }

 private:
  Term D(const Term& e) {
    return match(
        e, [&](const Constant& c) { return pair(c.value, 0); },  // a constant in R
        [&](const Unit&) { return e; },                          // one that is not
        [&](const Variable&) { return e; },
        [&](const Plus& p) {
          return let_hat("y", D(p.left), [&](const Hat& y1) {
            return let_hat("y", D(p.right),
                           [&](const Hat& y2) { return pair(y1.primal + y2.primal, y1.prime + y2.prime); });
          });
        },
        [&](const Times& p) {
          return let_hat("y", D(p.left), [&](const Hat& y1) {
            return let_hat("y", D(p.right), [&](const Hat& y2) {
              return pair(y1.primal * y2.primal, y1.primal * y2.prime + y1.prime * y2.primal);
            });
          });
        },
        [&](const Less& p) {
          return let_hat("y", D(p.left), [&](const Hat& y1) {
            return let_hat("y", D(p.right), [&](const Hat& y2) { return y1.primal < y2.primal; });
          });
        },
        // The rest is standard.
        [&](const Lambda& f) { return lambda(f.parameter, D(f.body)); },
        [&](const Apply& a) { return apply(D(a.function), D(a.argument)); },
        [&](const Let& l) { return let(l.name, D(l.value), D(l.body)); },
        [&](const Pair& p) { return pair(D(p.first), D(p.second)); },
        [&](const First& p) { return fst(D(p.of)); }, [&](const Second& p) { return snd(D(p.of)); },
        [&](const Ref& r) { return ref(D(r.initial)); }, [&](const Read& r) { return read(D(r.cell)); },
        [&](const Assign& a) { return assign(D(a.cell), D(a.value)); },
        [&](const Left& s) { return inl(D(s.of)); }, [&](const Right& s) { return inr(D(s.of)); },
        [&](const Case& c) { return case_of(D(c.of), c.left, D(c.if_left), c.right, D(c.if_right)); },
        [&](const Shift& s) { return shift_in(s.continuation, D(s.body), s.level); },
        [&](const Reset& r) { return delimited(D(r.body), r.level); });
  }
};

}  // namespace

Term forward(const Term& f, Place l) {
  const Term source = closed_source(f, "forward", l);
  return run_on_large_stack([&] { return Forward(source).transform(source); });
}

}  // namespace lantern::calculus
