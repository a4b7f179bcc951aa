// Random well-typed terms of the calculus, of type R -> R, decoded from a sequence of choices.
//
// Every sequence decodes to a term, a shorter one or one of smaller numbers to a simpler term, and the empty
// one to a leaf: what shrinks sequences shrinks terms. Terms end: recursion is over data, or over a number
// that grows by at least 1 up to a bound, starting from a square.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lantern/compiler/calculus/calculus.hpp"

namespace lantern::test {

class RandomTerm {
 public:
  /// `over_rep` keeps to what program(f) of the calculus takes: conditionals on numbers return neither
  /// functions nor sums, and a function that recurs over a number uses no functions and references from
  /// outside.
  RandomTerm(const std::vector<std::uint8_t>& choices, bool over_rep)
      : choices_(choices), over_rep_(over_rep) {}

  calculus::Term function() {
    const calculus::Name x = bind(real());
    return calculus::lambda(x, expression(real(), 6));
  }

 private:
  using Term = calculus::Term;
  using Name = calculus::Name;

  struct Type {
    enum Kind { real, truth, unit, pair, sum, function, cell } kind;
    std::vector<Type> parts{};
    bool operator==(const Type& b) const { return kind == b.kind && parts == b.parts; }
  };
  static Type real() { return {Type::real}; }
  static bool is_data(const Type& t) {
    return t.kind == Type::real || t.kind == Type::truth || t.kind == Type::unit ||
           (t.kind == Type::pair && is_data(t.parts[0]) && is_data(t.parts[1]));
  }

  /// A number below n; 0 when the choices are used up.
  unsigned below(unsigned n) { return at_ < choices_.size() ? choices_[at_++] % n : 0; }

  Type type(int depth) {
    switch (below(depth > 0 ? 7 : 2)) {
      case 1:
        return {Type::truth};
      case 2:
        return {Type::pair, {type(depth - 1), type(depth - 1)}};
      case 3:
        return {Type::sum, {type(depth - 1), type(depth - 1)}};
      case 4:
        return {Type::function, {type(depth - 1), type(depth - 1)}};
      case 5:
        return {Type::cell};
      case 6:
        return {Type::unit};
      default:
        return real();
    }
  }

  // ---- scope ----

  Name bind(const Type& t) {
    static const char* const letters[] = {"x", "b", "u", "p", "s", "f", "r"};
    Name name = letters[t.kind] + std::to_string(++names_);
    scope_.emplace_back(name, t);
    return name;
  }
  template <class Body>
  auto within(const Body& body) {
    const std::size_t seen = scope_.size();
    auto result = body();
    scope_.resize(seen);
    return result;
  }
  template <class Fits>
  std::vector<std::size_t> in_scope(const Fits& fits) const {
    std::vector<std::size_t> found;
    for (std::size_t i = scope_.size(); i-- > 0;)
      if (fits(scope_[i].second)) found.push_back(i);
    return found;
  }
  template <class Fits>
  const std::pair<Name, Type>* pick(const Fits& fits) {
    const auto found = in_scope(fits);
    return found.empty() ? nullptr : &scope_[found[below(static_cast<unsigned>(found.size()))]];
  }

  // ---- terms ----

  /// One of type t, by what t is made of.
  Term introduction(const Type& t, int depth) {
    switch (t.kind) {
      case Type::real: {
        static const double constants[] = {1, 2, 0.5, -1, 0, 3, -0.25, 1.5};
        return calculus::number(constants[below(8)]);
      }
      case Type::truth:
        return calculus::truth(below(2) == 0);
      case Type::unit:
        return calculus::unit();
      case Type::pair: {
        const Term first = expression(t.parts[0], depth - 1);
        return calculus::pair(first, expression(t.parts[1], depth - 1));
      }
      case Type::sum:
        return below(2) == 0 ? calculus::inl(expression(t.parts[0], depth - 1))
                             : calculus::inr(expression(t.parts[1], depth - 1));
      case Type::function:
        return function_of(t, depth);
      default:
        return calculus::ref(expression(real(), depth - 1));
    }
  }
  Term function_of(const Type& t, int depth) {
    return within([&] {
      const Name y = bind(t.parts[0]);
      return calculus::lambda(y, expression(t.parts[1], depth - 1));
    });
  }

  Term expression(const Type& t, int depth) {
    const auto same = [&t](const Type& other) { return other == t; };
    if (depth <= 0 || at_ >= choices_.size()) {
      if (const auto* v = pick(same)) return calculus::variable(v->first);
      return introduction(t, 0);
    }
    const unsigned production = below(t.kind == Type::real ? 22 : 14);
    switch (production) {
      case 0:
        if (const auto* v = pick(same)) return calculus::variable(v->first);
        break;
      case 1:
        return introduction(t, depth);
      case 2:
      case 3:
        return let_in(type(2), t, depth);
      case 4: {  // @ (λy. e) e
        const Type argument = type(1);
        const Term f = function_of({Type::function, {argument, t}}, depth);
        return calculus::apply(f, expression(argument, depth - 1));
      }
      case 5:
      case 6:
        return call(t, depth);
      case 7: {
        const Type other = type(1);
        return below(2) == 0 ? calculus::fst(expression({Type::pair, {t, other}}, depth - 1))
                             : calculus::snd(expression({Type::pair, {other, t}}, depth - 1));
      }
      case 8:
      case 9:
        return conditional(t, depth);
      case 10:
        return by_cases(t, depth);
      case 11:
        return effect(t, depth);
      case 12:
        return let_in({Type::cell}, t, depth);
      case 13:
        return let_in({Type::function, {real(), t}}, t, depth);
      case 14:
      case 15:
      case 16: {
        const Term left = expression(t, depth - 1);
        return left * expression(t, depth - 1);
      }
      case 17:
        return recursion_on_number(depth);
      case 18:
        return recursion_on_list(depth);
      case 19:
        return recursion_on_tree(depth);
      case 20:
        if (const auto* cell = pick([](const Type& c) { return c.kind == Type::cell; }))
          return calculus::read(calculus::variable(cell->first));
        break;
      default: {
        const Term left = expression(t, depth - 1);
        return left + expression(t, depth - 1);
      }
    }
    return introduction(t, depth);
  }

  Term let_in(const Type& of, const Type& t, int depth) {
    const Term value = expression(of, depth - 1);
    return within([&] {
      const Name y = bind(of);
      return calculus::let(y, value, expression(t, depth - 1));
    });
  }

  Term call(const Type& t, int depth) {
    const auto* f = pick([&t](const Type& g) { return g.kind == Type::function && g.parts[1] == t; });
    if (!f) return introduction(t, depth);
    const auto [name, g] = *f;
    return calculus::apply(calculus::variable(name), expression(g.parts[0], depth - 1));
  }

  Term conditional(const Type& t, int depth) {
    if (over_rep_ && !is_data(t)) return introduction(t, depth);
    const Term condition = below(4) == 3 ? expression({Type::truth}, depth - 1) : comparison(depth);
    const Term yes = within([&] { return expression(t, depth - 1); });
    return calculus::if_then_else(condition, yes, within([&] { return expression(t, depth - 1); }));
  }
  Term comparison(int depth) {
    const Term left = expression(real(), depth - 1);
    return left < expression(real(), depth - 2) + 0.0625;
  }

  Term by_cases(const Type& t, int depth) {
    const Type a = type(1), b = type(1);
    const Term of = expression({Type::sum, {a, b}}, depth - 1);
    const auto branch = [&](const Type& payload) {
      return within([&] {
        const Name y = bind(payload);
        return std::pair(y, expression(t, depth - 1));
      });
    };
    const auto [x, yes] = branch(a);
    const auto [y, no] = branch(b);
    return calculus::case_of(of, x, yes, y, no);
  }

  Term effect(const Type& t, int depth) {
    const auto* cell = pick([](const Type& c) { return c.kind == Type::cell; });
    if (!cell) return let_in({Type::cell}, t, depth);
    const Term r = calculus::variable(cell->first);
    const Term value = expression(real(), depth - 1);
    const Term done = below(2) == 0 ? calculus::assign(r, value) : calculus::add_to(r, value);
    return calculus::sequence(done, expression(t, depth - 1));
  }

  /// letrec f = λt. if t < bound then ... @ f (t + 1 + c * t * t) ... else e in @ f (s * s)
  Term recursion_on_number(int depth) {
    const Term start = expression(real(), depth - 2);
    const Name f = "g" + std::to_string(++names_), t = "t" + std::to_string(names_),
               s = "q" + std::to_string(names_);
    const auto hidden = hide_from_staged_function();
    scope_.emplace_back(t, real());
    const Term now = calculus::variable(t);
    const Term next = below(2) == 0 ? now + 1 : now + 1 + 0.25 * now * now;
    const Term again = calculus::apply(calculus::variable(f), next);
    Term step = again;
    switch (below(3)) {
      case 1:
        step = expression(real(), depth - 2) * again;
        break;
      case 2:
        step = again + expression(real(), depth - 2);
        break;
      default:
        break;
    }
    const Term end = expression(real(), depth - 2);
    const Term body = calculus::if_then_else(now < 1 + static_cast<int>(below(3)), step, end);
    scope_ = hidden;
    const Term square = calculus::let(s, start, calculus::variable(s) * calculus::variable(s));
    return calculus::letrec(f, t, body, calculus::apply(calculus::variable(f), square));
  }
  std::vector<std::pair<Name, Type>> hide_from_staged_function() {
    auto all = scope_;
    if (over_rep_)
      std::erase_if(scope_, [](const auto& v) { return !is_data(v.second) && v.second.kind != Type::sum; });
    // Sums may hold functions.
    if (over_rep_) std::erase_if(scope_, [](const auto& v) { return v.second.kind == Type::sum; });
    return all;
  }

  /// A fold of inr (e, inr (e, inl ()))
  Term recursion_on_list(int depth) {
    Term list = calculus::inl(calculus::unit());
    for (unsigned i = below(3) + 1; i > 0; --i)
      list = calculus::inr(calculus::pair(expression(real(), depth - 2), list));
    return fold(list, depth, [&](const Name& f, const Term& node) {
      const Name h = bind(real());
      const Term rest = calculus::apply(calculus::variable(f), calculus::snd(node));
      const Term e = expression(real(), depth - 2);
      return calculus::let(h, calculus::fst(node),
                           below(2) == 0 ? e * rest : rest + e * calculus::variable(h));
    });
  }
  /// A fold of a tree with a value in each leaf, inr (inl e, inl e): Fig. 3
  Term recursion_on_tree(int depth) {
    const Term a = calculus::inl(expression(real(), depth - 2)),
               b = calculus::inl(expression(real(), depth - 2));
    const Term tree = below(2) == 0 ? calculus::inr(calculus::pair(a, b))
                                    : calculus::inr(calculus::pair(calculus::inr(calculus::pair(a, b)), a));
    return fold(tree, depth, [&](const Name& f, const Term& node) {
      const auto child = [&](const Term& c) { return calculus::apply(calculus::variable(f), c); };
      const Term e = expression(real(), depth - 2);
      return child(calculus::fst(node)) * child(calculus::snd(node)) + e;
    });
  }
  template <class Node>
  Term fold(const Term& data, int depth, const Node& node) {
    const std::string number = std::to_string(++names_);
    const Name f = "g" + number, t = "t" + number, v = "v" + number, p = "p" + number;
    const Term body = within([&] {
      // Not in scope as a number: the leaf of a list is ().
      const Term leaf = expression(real(), depth - 2);
      return calculus::case_of(calculus::variable(t), v, leaf, p, node(f, calculus::variable(p)));
    });
    return calculus::letrec(f, t, body, calculus::apply(calculus::variable(f), data));
  }

  const std::vector<std::uint8_t>& choices_;
  bool over_rep_;
  std::size_t at_ = 0;
  unsigned names_ = 0;
  std::vector<std::pair<Name, Type>> scope_;
};

}  // namespace lantern::test
