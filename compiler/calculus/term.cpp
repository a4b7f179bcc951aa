// Terms: destruction, names, renaming, comparison.
#include "lantern/compiler/calculus/term.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "lantern/compiler/control/control.hpp"

namespace lantern::calculus {

using namespace core;

namespace {

/// The parts of a form, in order of evaluation.
template <class F, class Each>
void for_each_part(F& form, const Each& each) {
  std::visit(
      [&each]<class T>(T& e) {
        using U = std::remove_const_t<T>;
        if constexpr (requires { e.left.node(); })
          each(e.left), each(e.right);
        else if constexpr (std::same_as<U, Lambda> || std::same_as<U, Shift> || std::same_as<U, Reset>)
          each(e.body);
        else if constexpr (std::same_as<U, Apply>)
          each(e.function), each(e.argument);
        else if constexpr (std::same_as<U, Let>)
          each(e.value), each(e.body);
        else if constexpr (std::same_as<U, Pair>)
          each(e.first), each(e.second);
        else if constexpr (std::same_as<U, Ref>)
          each(e.initial);
        else if constexpr (std::same_as<U, Read>)
          each(e.cell);
        else if constexpr (std::same_as<U, Assign>)
          each(e.cell), each(e.value);
        else if constexpr (std::same_as<U, Case>)
          each(e.of), each(e.if_left), each(e.if_right);
        else if constexpr (requires { e.of.node(); })
          each(e.of);
      },
      form);
}

/// Calls each(name) for every name in the term, bound or not.
template <class Each>
void for_each_name(const Term& e, const Each& each) {
  match(
      e, [&](const Variable& v) { each(v.name); }, [&](const Lambda& l) { each(l.parameter); },
      [&](const Let& l) { each(l.name); }, [&](const Shift& s) { each(s.continuation); },
      [&](const Case& c) { each(c.left), each(c.right); }, [](const auto&) {});
}

/// All subterms, without recursion.
template <class Each>
void walk(const Term& e, const Each& each) {
  std::vector<const Term*> todo{&e};
  while (!todo.empty()) {
    const Term& t = *todo.back();
    todo.pop_back();
    each(t);
    for_each_part(t.node().form, [&todo](const Term& part) { todo.push_back(&part); });
  }
}

/// The part of a name that tells it from others: without the ~ of let_pair and without primes.
Name stem(const Name& name) {
  const std::size_t begin = name.starts_with('~') ? 1 : 0;
  return name.substr(begin, name.find_last_not_of('\'') + 1 - begin);
}

}  // namespace

Term make(Form form) { return Term(std::make_shared<const Node>(std::move(form))); }

Term::Term(double constant) : Term(make(Constant{constant})) {}

Node::~Node() {
  std::vector<std::shared_ptr<const Node>> pending;
  const auto take_parts = [&pending](Form& f) {
    for_each_part(f, [&pending](Term& part) {
      if (auto node = part.release()) pending.push_back(std::move(node));
    });
  };
  take_parts(form);
  while (!pending.empty()) {
    const std::shared_ptr<const Node> node = std::move(pending.back());
    pending.pop_back();
    // The last reference: nothing sees the parts go.
    if (node.use_count() == 1) take_parts(const_cast<Node&>(*node).form);
  }
}

// ---- names ----

FreshNames::FreshNames(const Term& e) {
  walk(e, [this](const Term& t) { for_each_name(t, [this](const Name& x) { avoid(x); }); });
}

void FreshNames::avoid(const Name& name) { used_.insert(stem(name)); }

Name FreshNames::operator()(const Name& hint) {
  Name base = stem(hint);
  while (base.size() > 1 && base.back() >= '0' && base.back() <= '9') base.pop_back();
  Name name = base;
  for (std::size_t i = 1; !used_.insert(name).second; ++i) name = base + std::to_string(i);
  return hint.starts_with('~') ? "~" + name : name;
}

namespace {

/// What surrounds a subterm: for each name in scope, what it represents; the innermost last.
template <class T>
class Scope {
 public:
  const T* find(const Name& x) const {
    const auto at = meanings_.find(x);
    return at == meanings_.end() || at->second.empty() ? nullptr : &at->second.back();
  }
  /// Runs body() where `x` represents `meaning`.
  template <class Body>
  auto with(const Name& x, T meaning, const Body& body) {
    meanings_[x].push_back(std::move(meaning));
    auto result = body();
    meanings_[x].pop_back();
    return result;
  }

 private:
  std::map<Name, std::vector<T>> meanings_;
};

class FreeVariables {
 public:
  bool visit(const Term& e) {
    return match(
        e,
        [&](const Variable& v) {
          if (!bound_.find(v.name)) found.insert(v.name);
          return true;
        },
        [&](const Lambda& l) { return under(l.parameter, l.body); },
        [&](const Let& l) { return visit(l.value) && under(l.name, l.body); },
        [&](const Shift& s) { return under(s.continuation, s.body); },
        [&](const Case& c) { return visit(c.of) && under(c.left, c.if_left) && under(c.right, c.if_right); },
        [&](const auto&) {
          for_each_part(e.node().form, [this](const Term& part) { visit(part); });
          return true;
        });
  }
  std::set<Name> found;

 private:
  bool under(const Name& x, const Term& e) {
    return bound_.with(x, {}, [&] { return visit(e); });
  }
  Scope<std::monostate> bound_;
};

class Renaming {
 public:
  explicit Renaming(const Term& e) : fresh_(e), taken_(free_variables(e)) {}

  Term operator()(const Term& e) {
    Renaming& r = *this;
    return match(
        e, [&](const Constant&) { return e; }, [&](const Unit&) { return e; },
        [&](const Variable& v) {
          const Name* x = names_.find(v.name);
          return x ? variable(*x) : e;
        },
        [&](const Plus& p) {
          const Term left = r(p.left);
          return left + r(p.right);
        },
        [&](const Times& p) {
          const Term left = r(p.left);
          return left * r(p.right);
        },
        [&](const Less& p) {
          const Term left = r(p.left);
          return left < r(p.right);
        },
        [&](const Lambda& l) {
          const auto [x, body] = under(l.parameter, l.body);
          return lambda(x, body);
        },
        [&](const Apply& a) {
          const Term f = r(a.function);
          return apply(f, r(a.argument));
        },
        [&](const Let& l) {
          const Term value = r(l.value);
          const auto [x, body] = under(l.name, l.body);
          return let(x, value, body);
        },
        [&](const Pair& p) {
          const Term a = r(p.first);
          return pair(a, r(p.second));
        },
        [&](const First& f) { return fst(r(f.of)); }, [&](const Second& s) { return snd(r(s.of)); },
        [&](const Ref& f) { return ref(r(f.initial)); }, [&](const Read& f) { return read(r(f.cell)); },
        [&](const Assign& a) {
          const Term cell = r(a.cell);
          return assign(cell, r(a.value));
        },
        [&](const Left& f) { return inl(r(f.of)); }, [&](const Right& f) { return inr(r(f.of)); },
        [&](const Case& c) {
          const Term of = r(c.of);
          const auto [x, a] = under(c.left, c.if_left);
          const auto [y, b] = under(c.right, c.if_right);
          return case_of(of, x, a, y, b);
        },
        [&](const Shift& s) {
          const auto [k, body] = under(s.continuation, s.body);
          return shift_in(k, body, s.level);
        },
        [&](const Reset& s) { return delimited(r(s.body), s.level); });
  }

 private:
  std::pair<Name, Term> under(const Name& x, const Term& e) {
    const Name y = x == "_" || taken_.insert(x).second ? x : fresh_(x);
    return {y, names_.with(x, y, [&] { return (*this)(e); })};
  }
  FreshNames fresh_;
  std::set<Name> taken_;
  Scope<Name> names_;
};

class AlphaEquality {
 public:
  bool operator()(const Term& a, const Term& b) {
    if (a.node().form.index() != b.node().form.index()) return false;
    return match(
        a, [&](const Constant& x) { return x.value == b.as<Constant>()->value; },
        [&](const Variable& x) {
          const std::size_t *i = left_.find(x.name), *j = right_.find(b.as<Variable>()->name);
          return i && j ? *i == *j : !i && !j && x.name == b.as<Variable>()->name;
        },
        [&](const Lambda& x) {
          const auto& y = *b.as<Lambda>();
          return under(x.parameter, x.body, y.parameter, y.body);
        },
        [&](const Let& x) {
          const auto& y = *b.as<Let>();
          return (*this)(x.value, y.value) && under(x.name, x.body, y.name, y.body);
        },
        [&](const Shift& x) {
          const auto& y = *b.as<Shift>();
          return x.level == y.level && under(x.continuation, x.body, y.continuation, y.body);
        },
        [&](const Reset& x) {
          const auto& y = *b.as<Reset>();
          return x.level == y.level && (*this)(x.body, y.body);
        },
        [&](const Case& x) {
          const auto& y = *b.as<Case>();
          return (*this)(x.of, y.of) && under(x.left, x.if_left, y.left, y.if_left) &&
                 under(x.right, x.if_right, y.right, y.if_right);
        },
        [&](const auto&) {
          std::vector<const Term*> parts;
          for_each_part(b.node().form, [&](const Term& part) { parts.push_back(&part); });
          bool equal = true;
          std::size_t i = 0;
          for_each_part(a.node().form,
                        [&](const Term& part) { equal = equal && (*this)(part, *parts[i++]); });
          return equal;
        });
  }

 private:
  bool under(const Name& x, const Term& a, const Name& y, const Term& b) {
    const std::size_t binder = ++binders_;
    return left_.with(x, binder, [&] { return right_.with(y, binder, [&] { return (*this)(a, b); }); });
  }
  std::size_t binders_ = 0;
  Scope<std::size_t> left_, right_;
};

}  // namespace

std::set<Name> free_variables(const Term& e) {
  return run_on_large_stack([&] {
    FreeVariables f;
    f.visit(e);
    return std::move(f.found);
  });
}

Term distinct_binders(const Term& e) {
  return run_on_large_stack([&] { return Renaming(e)(e); });
}

bool alpha_equal(const Term& a, const Term& b) {
  return run_on_large_stack([&] { return AlphaEquality()(a, b); });
}

unsigned control_level(const Term& e) {
  unsigned highest = 0;
  walk(e, [&highest](const Term& t) {
    if (const auto* s = t.as<Shift>()) highest = std::max(highest, s->level);
    if (const auto* r = t.as<Reset>()) highest = std::max(highest, r->level);
  });
  return highest;
}

std::size_t size(const Term& e) {
  std::size_t n = 0;
  walk(e, [&n](const Term&) { ++n; });
  return n;
}

}  // namespace lantern::calculus
