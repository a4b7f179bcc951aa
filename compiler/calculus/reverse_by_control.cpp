// Reverse mode with shift and reset in the target language (Lantern paper, Fig. 9).
//
//   Transform(f) = λx. let x̂ = (x, ref 0) in ⟨ let ẑ = @ D[f] x̂ in z' := 1 ⟩; !x'
//
// The source may be a derivative itself, with shift and reset of its own: reverse mode over reverse mode
// (section 3.7, Fig. 13). For that, this derivative's operators are of a level above all of the source's.
// What they capture is the rest of the whole program: the source's resets, and what waits behind each of
// them, its backward pass. Were they of the same level, a multiplication in the source's backward pass would
// capture no more than the rest of that pass.
//
// Scala has one pair of operators, so Fig. 13 writes the continuations beyond the inner derivative's reset
// out, as functions k2 and k3; what it calls shift2 is the operator of the inner derivative, the source's
// here. In the same way Fig. 9 over Fig. 11, whose result has its continuations written out, does with one
// level.
#include "lantern/compiler/calculus/notation.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::calculus {

using namespace core;

namespace {

class ReverseByControl : Notation {
 public:
  explicit ReverseByControl(const Term& source) : Notation(source), level_(control_level(source) + 1) {}

  Term transform(const Term& f) {
    return lambda_of("x", [&](const Term& argument) {
      return let_hat("x", pair(argument, ref(0)), [&](const Hat& x) {
        const Term program = let_hat("z", apply(D(f), x), [](const Hat& z) { return assign(z.prime, 1); });
        return sequence(delimited(program, level_), read(x.prime));
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
        [&](const Shift& s) { return shift_in(s.continuation, D(s.body), s.level); },
        [&](const Reset& r) { return delimited(D(r.body), r.level); });
  }

  /// shift k in body(k)
  template <class Body>
  Term shift_of(const Body& body) {
    const Name k = fresh("k");
    return shift_in(k, body(variable(k)), level_);
  }

  unsigned level_;
};

}  // namespace

Term reverse_by_control(const Term& f, Place l) {
  const Term source = closed_source(f, "reverse_by_control", l);
  return run_on_large_stack([&] { return ReverseByControl(source).transform(source); });
}

}  // namespace lantern::calculus
