// Reverse mode with shift and reset in the meta-language (Lantern paper, Fig. 10).
//
//   Transform(f) = λx. let x̂ = (x, ref 0) in @ (@ D[f] x̂) (λ~z. let ẑ = z in z' := 1); !x'
//
// The overlined constructs of the figure are the C++ operators shift and reset and the call k(...) of a C++
// continuation; the underlined ones build terms. A continuation is called once in each rule, so one-shot
// continuations are enough.
//
// One difference from the figure: the results of ref, ! and := are named where they happen. The figure hands
// the terms `ref y`, `!y`, `y := e` themselves to their context, which may place them behind effects of later
// operands: in
// `!r + (r := 2; x * x)` the read would come after the assignment.
#include "lantern/compiler/calculus/notation.hpp"
#include "lantern/compiler/control/control.hpp"

namespace lantern::calculus {

using namespace core;

namespace {

class ReverseByMetaControl : Notation {
 public:
  using Notation::Notation;

  Term transform(const Term& f) {
    return lambda_of("x", [&](const Term& argument) {
      return let_hat("x", pair(argument, ref(0)), [&](const Hat& x) {
        const Term program = reset(meta_, [&] {
          const Term function = D(f);
          return apply(apply(function, x), wavy_lambda("z", [&](const Term& z) {
                         return let_hat("z", z, [](const Hat& hat) { return assign(hat.prime, 1); });
                       }));
        });
        return sequence(program, read(x.prime));
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
          return shift<Term>(meta_, [this, p](auto k) {
            return let_hat("y", D(p.left), [&](const Hat& y1) {
              return let_hat("y", D(p.right), [&](const Hat& y2) {
                return let_hat("y", pair(y1.primal + y2.primal, ref(0)), [&](const Hat& y) {
                  const Term rest = k(y);
                  return sequence(rest,                                      //
                                  sequence(add_to(y1.prime, read(y.prime)),  //
                                           add_to(y2.prime, read(y.prime))));
                });
              });
            });
          });
        },
        [&](const Times& p) {
          return shift<Term>(meta_, [this, p](auto k) {
            return let_hat("y", D(p.left), [&](const Hat& y1) {
              return let_hat("y", D(p.right), [&](const Hat& y2) {
                return let_hat("y", pair(y1.primal * y2.primal, ref(0)), [&](const Hat& y) {
                  const Term rest = k(y);
                  return sequence(rest,                                                  //
                                  sequence(add_to(y1.prime, read(y.prime) * y2.primal),  //
                                           add_to(y2.prime, read(y.prime) * y1.primal)));
                });
              });
            });
          });
        },
        [&](const Less& p) {
          return shift<Term>(meta_, [this, p](auto k) {
            return let_hat("y", D(p.left), [&](const Hat& y1) {
              return let_hat("y", D(p.right), [&](const Hat& y2) {
                return let_of("b", y1.primal < y2.primal, [&](const Term& b) { return k(b); });
              });
            });
          });
        },
        [&](const Lambda& f) {
          const Term body = lambda_of(
              "k", [&](const Term& k) { return reset(meta_, [&] { return apply(k, D(f.body)); }); });
          return lambda(f.parameter, body);
        },
        [&](const Apply& a) {
          return shift<Term>(meta_, [this, a](auto k) {
            const Term function = D(a.function);
            const Term call = apply(function, D(a.argument));
            return apply(call, wavy_lambda("a", [&](const Term& result) { return k(result); }));
          });
        },
        [&](const Let& l) {
          return shift<Term>(meta_, [this, l](auto k) {
            const Term value = D(l.value);
            return let(l.name, value, reset(meta_, [&] { return k(D(l.body)); }));
          });
        },
        [&](const Case& c) {
          return shift<Term>(meta_, [this, c](auto k) {
            const Term rest = wavy_lambda("a", [&](const Term& result) { return k(result); });
            return wavy_let("k", rest, [&](const Term& k1) {
              const Term of = D(c.of);
              const Term left = reset(meta_, [&] { return apply(k1, D(c.if_left)); });
              const Term right = reset(meta_, [&] { return apply(k1, D(c.if_right)); });
              return case_of(of, c.left, left, c.right, right);
            });
          });
        },
        // The rest is standard.
        [&](const Pair& p) {
          const Term first = D(p.first);
          return pair(first, D(p.second));
        },
        [&](const First& p) { return fst(D(p.of)); }, [&](const Second& p) { return snd(D(p.of)); },
        [&](const Left& s) { return inl(D(s.of)); }, [&](const Right& s) { return inr(D(s.of)); },
        [&](const Ref& r) { return named(ref(D(r.initial))); },
        [&](const Read& r) { return named(read(D(r.cell))); },
        [&](const Assign& a) {
          const Term cell = D(a.cell);
          return named(assign(cell, D(a.value)));
        },
        [&](const auto&) { return e; });  // shift and reset: not in a source
  }

  /// An effect, done here: shift k in let v = effect in ⟨ @ k v ⟩
  Term named(const Term& effect) {
    return shift<Term>(meta_, [this, effect](auto k) {
      return let_of("v", effect, [&](const Term& v) { return reset(meta_, [&] { return k(v); }); });
    });
  }

  Prompt<Term> meta_;
};

}  // namespace

Term reverse_by_meta_control(const Term& f, Place l) {
  const Term source = source_without_control(f, "reverse_by_meta_control", l);
  return run_on_large_stack([&] { return ReverseByMetaControl(source).transform(source); });
}

}  // namespace lantern::calculus
