// Derived constructs (Lantern paper, Fig. 3, right column): booleans, conditionals, recursion, loops, trees,
// sugar.
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

/// A loop, as a tail recursive function: letrec f = λx. if condition then @ f body else x in @ f initial. In
/// `condition` and `body` x is the state.
Term while_loop(const Name& f, const Name& x, Term condition, Term body, Term initial);

/// Trees with values in the leaves: leaf v = inl v, node a b = inr (a, b).
Term leaf(Term value);
Term node(Term left, Term right);
/// letrec f = λt. case t of v ⇒ at_leaf or p ⇒ let l = @ f (fst p) in let r = @ f (snd p) in at_node in @ f
/// tree. The names v, l and r may be used in `at_leaf` and `at_node`, which say what becomes of a leaf's
/// value and of two results.
Term fold_tree(const Name& f, const Name& v, Term at_leaf, const Name& l, const Name& r, Term at_node,
               Term tree);

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
