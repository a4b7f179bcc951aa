// The notation of the figures, for the files of the transformations.
#pragma once

#include "lantern/compiler/calculus/derived.hpp"
#include "lantern/compiler/calculus/transform.hpp"

namespace lantern::calculus {

/// The variable sugar of Fig. 4: ŷ = (y, y').
struct Hat {
  Term primal, prime;
  operator Term() const { return pair(primal, prime); }
};

class Notation {
 public:
  explicit Notation(const Term& source) : fresh_(source) {}

  Name fresh(const Name& hint) { return fresh_(hint); }

  /// λx. body(x)
  template <class Body>
  Term lambda_of(const Name& hint, const Body& body) {
    const Name x = fresh_(hint);
    return lambda(x, body(variable(x)));
  }
  /// let x = value in body(x)
  template <class Body>
  Term let_of(const Name& hint, const Term& value, const Body& body) {
    const Name x = fresh_(hint);
    return let(x, value, body(variable(x)));
  }
  /// let ŷ = value in body(ŷ)
  template <class Body>
  Term let_hat(const Name& hint, const Term& value, const Body& body) {
    const Name y = fresh_(hint), prime = y + "'";
    return let_pair(y, prime, value, body(Hat{variable(y), variable(prime)}));
  }

  // The wavy underlines of Fig. 10, which keep tail calls proper.

  /// λ~y. body(y), contracted by  λ~y. @~ k y → k
  template <class Body>
  Term wavy_lambda(const Name& hint, const Body& body) {
    const Name y = fresh_(hint);
    const Term result = body(variable(y));
    const auto* call = result.as<Apply>();
    const auto* k = call ? call->function.as<Variable>() : nullptr;
    const auto* argument = call ? call->argument.as<Variable>() : nullptr;
    return k && argument && argument->name == y && k->name != y ? call->function : lambda(y, result);
  }
  /// let~ y = value in~ body(y), contracted by  let~ y = y1 in~ e → e[y ← y1]
  template <class Body>
  Term wavy_let(const Name& hint, const Term& value, const Body& body) {
    return value.as<Variable>() ? body(value) : let_of(hint, value, body);
  }

 private:
  FreshNames fresh_;
};

/// The source as a transformation assumes it: closed, with Barendregt's convention; error if it is not
/// closed.
Term closed_source(const Term& f, const char* transformation, Place l);
/// The same where it must be without shift and reset, too.
Term source_without_control(const Term& f, const char* transformation, Place l);

}  // namespace lantern::calculus
