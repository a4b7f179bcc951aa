// Reverse mode with shift and reset in the target language (Lantern paper, Fig. 9).
//
//   Transform(f) = λx. let x̂ = (x, ref 0) in ⟨ let ẑ = @ D[f] x̂ in z' := 1 ⟩; !x'
#include "lantern/compiler/calculus/notation.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::calculus {

using namespace core;

namespace {

class ReverseByControl : Notation {
 public:
  using Notation::Notation;

  Term transform(const Term& f) {
    return lambda_of("x", [&](const Term& argument) {
      return let_hat("x", pair(argument, ref(0)), [&](const Hat& x) {
        const Term program = let_hat("z", apply(D(f), x), [](const Hat& z) { return assign(z.prime, 1); });
        return sequence(delimited(program), read(x.prime));
      });
    });
  }

 private:
  Term D(const Term& e) {
    return match(
        e, [&](const Constant& c) { return pair(c.value, ref(0)); },  // a constant in R
        [&](const Unit&) { return e; },                               // one that is not
        [&](const Variable&) { return e; },
        [&](const Plus& p) {
          return let_hat("y", D(p.left), [&](const Hat& y1) {
            return let_hat("y", D(p.right), [&](const Hat& y2) {
              return shift_of([&](const Term& k) {
                return let_hat("y", pair(y1.primal + y2.primal, ref(0)), [&](const Hat& y) {
                  return sequence(apply(k, y),                               //
                                  sequence(add_to(y1.prime, read(y.prime)),  //
                                           add_to(y2.prime, read(y.prime))));
                });
              });
            });
          });
        },
        [&](const Times& p) {
          return let_hat("y", D(p.left), [&](const Hat& y1) {
            return let_hat("y", D(p.right), [&](const Hat& y2) {
              return shift_of([&](const Term& k) {
                return let_hat("y", pair(y1.primal * y2.primal, ref(0)), [&](const Hat& y) {
                  return sequence(apply(k, y),                                           //
                                  sequence(add_to(y1.prime, read(y.prime) * y2.primal),  //
                                           add_to(y2.prime, read(y.prime) * y1.primal)));
                });
              });
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
        [&](const auto&) { return e; });  // shift and reset: not in a source
  }

  /// shift k in body(k)
  template <class Body>
  Term shift_of(const Body& body) {
    const Name k = fresh("k");
    return shift_in(k, body(variable(k)));
  }
};

}  // namespace

Term reverse_by_control(const Term& f, Place l) {
  const Term source = checked_source(f, "reverse_by_control", l);
  return run_on_large_stack([&] { return ReverseByControl(source).transform(source); });
}

}  // namespace lantern::calculus
