// Derived constructs (Lantern paper, Fig. 3, right column): booleans, conditionals, recursion, sugar.
#pragma once

#include <optional>
#include <utility>

#include "lantern/compiler/calculus/term.hpp"

namespace lantern::calculus {

/// True = inl (), False = inr ().
Term truth(bool value);

/// if b then t else e  =  case b of _ ⇒ t or _ ⇒ e
Term if_then_else(Term b, Term t, Term e);

/// letrec f = λx. e1 in e2  =  let f0 = λf1. λx. let f = @ f1 f1 in e1 in let f = @ f0 f0 in e2
Term letrec(const Name& f, const Name& x, Term e1, Term e2);

/// A letrec, found again in the term that derives it: letrec f = λx. e1 in e2, where renaming may have given
/// the function another name, g, in e2.
struct Letrec {
  Name f, x;
  Term e1;
  Name g;
  Term e2;
};
std::optional<Letrec> as_letrec(const Term& e);

/// e1; e2  =  let _ = e1 in e2
Term sequence(Term e1, Term e2);

/// y += e  =  y := !y + e
Term add_to(const Term& y, Term e);

/// let (y, y') = e1 in e2  =  let ~y = e1 in let y = fst ~y in let y' = snd ~y in e2
Term let_pair(const Name& y, const Name& y_prime, Term e1, Term e2);

/// A let of a pair, found again.
struct LetPair {
  Name y, y_prime;
  Term e1, e2;
};
std::optional<LetPair> as_let_pair(const Term& e);

}  // namespace lantern::calculus
