// Derived constructs.
#include "lantern/compiler/calculus/derived.hpp"

namespace lantern::calculus {

Term truth(bool value) { return value ? inl(unit()) : inr(unit()); }

Term if_then_else(Term b, Term t, Term e) {
  return case_of(std::move(b), "_", std::move(t), "_", std::move(e));
}

Term letrec(const Name& f, const Name& x, Term e1, Term e2) {
  const Name f0 = f + "0", f1 = f + "1";
  const auto self = [&](const Name& g) { return apply(variable(g), variable(g)); };
  return let(f0, lambda(f1, lambda(x, let(f, self(f1), std::move(e1)))), let(f, self(f0), std::move(e2)));
}

namespace {

bool is_variable(const Term& e, const Name& x) {
  const auto* v = e.as<Variable>();
  return v && v->name == x;
}
bool is_self_application(const Term& e, const Name& x) {
  const auto* a = e.as<Apply>();
  return a && is_variable(a->function, x) && is_variable(a->argument, x);
}

}  // namespace

std::optional<Letrec> as_letrec(const Term& e) {
  const auto* outer = e.as<Let>();
  if (!outer) return {};
  const auto* generator = outer->value.as<Lambda>();
  const auto* use = outer->body.as<Let>();
  if (!generator || !use || !is_self_application(use->value, outer->name)) return {};
  const auto* function = generator->body.as<Lambda>();
  if (!function) return {};
  const auto* inner = function->body.as<Let>();
  if (!inner || !is_self_application(inner->value, generator->parameter)) return {};
  return Letrec{inner->name, function->parameter, inner->body, use->name, use->body};
}

Term while_loop(const Name& f, const Name& x, Term condition, Term body, Term initial) {
  const Term again = apply(variable(f), std::move(body));
  return letrec(f, x, if_then_else(std::move(condition), again, variable(x)),
                apply(variable(f), std::move(initial)));
}

Term leaf(Term value) { return inl(std::move(value)); }
Term node(Term left, Term right) { return inr(pair(std::move(left), std::move(right))); }

Term fold_tree(const Name& f, const Name& v, Term at_leaf, const Name& l, const Name& r, Term at_node,
               Term tree) {
  const Name t = f + "_tree", p = f + "_node";
  const auto fold = [&](Term child) { return apply(variable(f), std::move(child)); };
  const Term inner = let(l, fold(fst(variable(p))), let(r, fold(snd(variable(p))), std::move(at_node)));
  return letrec(f, t, case_of(variable(t), v, std::move(at_leaf), p, inner), fold(std::move(tree)));
}

Term sequence(Term e1, Term e2) { return let("_", std::move(e1), std::move(e2)); }

Term add_to(const Term& y, Term e) { return assign(y, read(y) + std::move(e)); }

Term let_pair(const Name& y, const Name& y_prime, Term e1, Term e2) {
  const Name p = "~" + y;
  return let(p, std::move(e1), let(y, fst(variable(p)), let(y_prime, snd(variable(p)), std::move(e2))));
}

// Names that start with ~ are let_pair's own and occur nowhere else.
std::optional<LetPair> as_let_pair(const Term& e) {
  const auto* p = e.as<Let>();
  if (!p || !p->name.starts_with('~')) return {};
  const auto* y = p->body.as<Let>();
  if (!y || !y->value.as<First>()) return {};
  const auto* y_prime = y->body.as<Let>();
  if (!y_prime || !y_prime->value.as<Second>()) return {};
  return LetPair{y->name, y_prime->name, p->value, y_prime->body};
}

}  // namespace lantern::calculus
