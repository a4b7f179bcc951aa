// Reverse mode with everything in continuation-passing style (Lantern paper, Fig. 11).
//
//   Transform(f) = λx. let x̂ = (x, ref 0) in D[f] (λm. @ (@ m x̂) (λ~z. let ẑ = z in z' := 1)); !x'
//
// The figure's static lambdas λκ and λp are C++ functions over terms; k, y and z are variables of the target
// language.
//
// As in Fig. 10, and unlike the figure, the results of ref, ! and := are named where they happen: κ may place
// its argument behind effects of later operands.
#include <functional>

#include "lantern/compiler/calculus/notation.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::calculus {

using namespace core;

namespace {

class ReverseByCps : Notation {
 public:
  using Notation::Notation;

  Term transform(const Term& f) {
    return lambda_of("x", [&](const Term& argument) {
      return let_hat("x", pair(argument, ref(0)), [&](const Hat& x) {
        const Term program = D(f, [&](const Term& m) {
          return apply(apply(m, x), wavy_lambda("z", [&](const Term& z) {
                         return let_hat("z", z, [](const Hat& hat) { return assign(hat.prime, 1); });
                       }));
        });
        return sequence(program, read(x.prime));
      });
    });
  }

 private:
  /// What becomes of the transformed term: a context, as a function.
  using Kappa = std::function<Term(const Term&)>;

  Term D(const Term& e, const Kappa& kappa) {
    return match(
        e, [&](const Constant& c) { return kappa(pair(c.value, ref(0))); },  // a constant in R
        [&](const Unit&) { return kappa(e); },                               // one that is not
        [&](const Variable&) { return kappa(e); },
        [&](const Plus& p) {
          return D(p.left, [&](const Term& p1) {
            return D(p.right, [&](const Term& p2) {
              return let_hat("y", p1, [&](const Hat& y1) {
                return let_hat("y", p2, [&](const Hat& y2) {
                  return let_hat("y", pair(y1.primal + y2.primal, ref(0)), [&](const Hat& y) {
                    return sequence(kappa(y),                                  //
                                    sequence(add_to(y1.prime, read(y.prime)),  //
                                             add_to(y2.prime, read(y.prime))));
                  });
                });
              });
            });
          });
        },
        [&](const Times& p) {
          return D(p.left, [&](const Term& p1) {
            return D(p.right, [&](const Term& p2) {
              return let_hat("y", p1, [&](const Hat& y1) {
                return let_hat("y", p2, [&](const Hat& y2) {
                  return let_hat("y", pair(y1.primal * y2.primal, ref(0)), [&](const Hat& y) {
                    return sequence(kappa(y),                                              //
                                    sequence(add_to(y1.prime, read(y.prime) * y2.primal),  //
                                             add_to(y2.prime, read(y.prime) * y1.primal)));
                  });
                });
              });
            });
          });
        },
        [&](const Less& p) {
          return D(p.left, [&](const Term& p1) {
            return D(p.right, [&](const Term& p2) {
              return let_hat("y", p1, [&](const Hat& y1) {
                return let_hat("y", p2,
                               [&](const Hat& y2) { return let_of("b", y1.primal < y2.primal, kappa); });
              });
            });
          });
        },
        [&](const Lambda& f) {
          const Term body = lambda_of(
              "k", [&](const Term& k) { return D(f.body, [&](const Term& m) { return apply(k, m); }); });
          return kappa(lambda(f.parameter, body));
        },
        [&](const Apply& a) {
          return D(a.function, [&](const Term& m) {
            return D(a.argument, [&](const Term& n) { return apply(apply(m, n), wavy_lambda("a", kappa)); });
          });
        },
        [&](const Let& l) {
          return D(l.value, [&](const Term& y1) { return let(l.name, y1, D(l.body, kappa)); });
        },
        [&](const Case& c) {
          return wavy_let("k", wavy_lambda("a", kappa), [&](const Term& k) {
            return D(c.of, [&](const Term& v) {
              const Kappa jump = [&](const Term& m) { return apply(k, m); };
              const Term left = D(c.if_left, jump);
              return case_of(v, c.left, left, c.right, D(c.if_right, jump));
            });
          });
        },
        // The rest is standard.
        [&](const Pair& p) {
          return D(p.first, [&](const Term& y1) {
            return D(p.second, [&](const Term& y2) { return kappa(pair(y1, y2)); });
          });
        },
        [&](const First& p) { return D(p.of, [&](const Term& y) { return kappa(fst(y)); }); },
        [&](const Second& p) { return D(p.of, [&](const Term& y) { return kappa(snd(y)); }); },
        [&](const Left& s) { return D(s.of, [&](const Term& y) { return kappa(inl(y)); }); },
        [&](const Right& s) { return D(s.of, [&](const Term& y) { return kappa(inr(y)); }); },
        [&](const Ref& r) { return D(r.initial, [&](const Term& y) { return let_of("v", ref(y), kappa); }); },
        [&](const Read& r) { return D(r.cell, [&](const Term& y) { return let_of("v", read(y), kappa); }); },
        [&](const Assign& a) {
          return D(a.cell, [&](const Term& y1) {
            return D(a.value, [&](const Term& y2) { return let_of("v", assign(y1, y2), kappa); });
          });
        },
        [&](const auto&) { return e; });  // shift and reset: not in a source
  }
};

}  // namespace

Term reverse_by_cps(const Term& f, Place l) {
  const Term source = source_without_control(f, "reverse_by_cps", l);
  return run_on_large_stack([&] { return ReverseByCps(source).transform(source); });
}

}  // namespace lantern::calculus
