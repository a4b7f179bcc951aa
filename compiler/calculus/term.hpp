// The lambda calculus in which the AD transformations are stated (Lantern paper, Fig. 3): immutable terms.
//
//   e ::= c | () | x | e + e | e * e | e < e | λx. e | @ e e | let x = e in e
//       | fst e | snd e | (e, e) | ref e | !e | e := e
//       | inl e | inr e | case e of x ⇒ e or x ⇒ e | shift x in e | ⟨e⟩ | shift₂ x in e | ⟨e⟩₂ | ...
//
// The figure has one level of control. Here every shift and every reset has a level, 1 where none is written
// (Danvy and Filinski, "Abstracting Control", 1990, section 5; the paper's section 3.7 asks for them): a
// reset of level n delimits what shifts of the levels 1 to n capture, so that a shift of level 2 captures
// resets of level 1 as well.
//
// One more form is ours: `e < e` compares two reals and gives the figure's booleans, True = inl () and False
// = inr
// (), so that a program can decide on a number. What the figure derives (if, letrec, +=, ;) is in
// derived.hpp.
//
// Evaluation is by value, left to right. Terms may be deep: nothing here recurses on the caller's stack.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace lantern::calculus {

using Name = std::string;

struct Node;

/// A term. A value that is cheap to copy and shares its parts.
class Term {
 public:
  /// A literal is a constant.
  Term(double constant);
  Term(int constant) : Term(static_cast<double>(constant)) {}
  explicit Term(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  const Node& node() const { return *node_; }
  /// The form as an F, or null if it is another.
  template <class F>
  const F* as() const;
  /// Gives the node away: for the iterative destruction of deep terms.
  std::shared_ptr<const Node> release() { return std::move(node_); }

 private:
  std::shared_ptr<const Node> node_;
};

struct Constant {
  double value;
};
struct Unit {};
struct Variable {
  Name name;
};
struct Plus {
  Term left, right;
};
struct Times {
  Term left, right;
};
struct Less {
  Term left, right;
};
struct Lambda {
  Name parameter;
  Term body;
};
struct Apply {
  Term function, argument;
};
struct Let {
  Name name;
  Term value, body;
};
struct Pair {
  Term first, second;
};
struct First {
  Term of;
};
struct Second {
  Term of;
};
struct Ref {
  Term initial;
};
struct Read {
  Term cell;
};
struct Assign {
  Term cell, value;
};
struct Left {
  Term of;
};
struct Right {
  Term of;
};
struct Case {
  Term of;
  Name left;
  Term if_left;
  Name right;
  Term if_right;
};
struct Shift {
  Name continuation;
  Term body;
  unsigned level;
};
struct Reset {
  Term body;
  unsigned level;
};

using Form = std::variant<Constant, Unit, Variable, Plus, Times, Less, Lambda, Apply, Let, Pair, First,
                          Second, Ref, Read, Assign, Left, Right, Case, Shift, Reset>;

struct Node {
  explicit Node(Form f) : form(std::move(f)) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();
  Form form;
};

template <class F>
const F* Term::as() const {
  return std::get_if<F>(&node_->form);
}

/// One function of one lambda per form: match(e, [](const Plus& e) {...}, ...). A lambda for `const auto&` is
/// the default.
template <class... F>
struct Cases : F... {
  using F::operator()...;
};
template <class... F>
Cases(F...) -> Cases<F...>;
template <class... F>
auto match(const Term& e, F&&... cases) {
  return std::visit(Cases<std::decay_t<F>...>{std::forward<F>(cases)...}, e.node().form);
}

/// Builders, one a form.
Term make(Form form);
inline Term number(double c) { return Term(c); }
inline Term unit() { return make(Unit{}); }
inline Term variable(Name x) { return make(Variable{std::move(x)}); }
inline Term operator+(Term a, Term b) { return make(Plus{std::move(a), std::move(b)}); }
inline Term operator*(Term a, Term b) { return make(Times{std::move(a), std::move(b)}); }
inline Term operator<(Term a, Term b) { return make(Less{std::move(a), std::move(b)}); }
inline Term lambda(Name x, Term body) { return make(Lambda{std::move(x), std::move(body)}); }
inline Term apply(Term f, Term x) { return make(Apply{std::move(f), std::move(x)}); }
inline Term let(Name x, Term value, Term body) {
  return make(Let{std::move(x), std::move(value), std::move(body)});
}
inline Term pair(Term a, Term b) { return make(Pair{std::move(a), std::move(b)}); }
inline Term fst(Term e) { return make(First{std::move(e)}); }
inline Term snd(Term e) { return make(Second{std::move(e)}); }
inline Term ref(Term e) { return make(Ref{std::move(e)}); }
inline Term read(Term cell) { return make(Read{std::move(cell)}); }                            // ! e
inline Term assign(Term cell, Term e) { return make(Assign{std::move(cell), std::move(e)}); }  // e := e
inline Term inl(Term e) { return make(Left{std::move(e)}); }
inline Term inr(Term e) { return make(Right{std::move(e)}); }
/// case e of x ⇒ a or y ⇒ b
inline Term case_of(Term e, Name x, Term a, Name y, Term b) {
  return make(Case{std::move(e), std::move(x), std::move(a), std::move(y), std::move(b)});
}
/// shift k in e: e in place of the computation up to the enclosing ⟨ ⟩ of this level or a higher one, which
/// is captured as k.
inline Term shift_in(Name k, Term e, unsigned level = 1) {
  return make(Shift{std::move(k), std::move(e), level});
}
/// ⟨e⟩
inline Term delimited(Term e, unsigned level = 1) { return make(Reset{std::move(e), level}); }

/// A source of names that occur nowhere yet. A name it gives may also be used with primes added.
class FreshNames {
 public:
  /// Avoids every name in `e`.
  explicit FreshNames(const Term& e);
  /// A new name that reminds of `hint`: x, x1, x2, ...
  Name operator()(const Name& hint);
  /// From now on `name` is in use.
  void avoid(const Name& name);

 private:
  std::set<Name> used_;  // without primes and ~
};

/// The variables that are not bound in `e`.
std::set<Name> free_variables(const Term& e);

/// The same term with all bound variables different from each other and from the free ones (Barendregt's
/// convention, which the transformations assume). Names that comply are kept; `_` binds nothing.
Term distinct_binders(const Term& e);

/// Whether the two are the same term up to the names of bound variables.
bool alpha_equal(const Term& a, const Term& b);

/// The highest level of a shift or reset in `e`; 0 if there is none.
unsigned control_level(const Term& e);

/// The number of nodes.
std::size_t size(const Term& e);

/// The paper's notation, on several lines; derived constructs are shown as such (see derived.hpp).
std::string to_string(const Term& e);
/// A level of control in it: nothing for 1, then ₂, ₃, ...
std::string subscript(unsigned level);
/// A term on one line, cut to about `limit` characters: for messages.
std::string excerpt(const Term& e, std::size_t limit = 60);

}  // namespace lantern::calculus
