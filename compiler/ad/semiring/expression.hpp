// Expressions of one variable over any commutative semiring, as programs: the type `exp` of de Vilhena and
// Pottier, "Verifying an Effect-Handler-Based Define-By-Run Reverse-Mode AD Library", Fig. 1.
//
// An expression is a computation that is given zero, one, add, mul and the value of the variable, and cannot
// look at the numbers otherwise (tagless final style). Loops, mutation, recursion and effects it handles
// itself are its own affair.
//
//   const Expression cube([](const Dictionary<Number>& r, const Number& x) {
//     const Number y = x + r.one;
//     return y * y * y;
//   });
//   cube.eval(reals(), 4.0)                     // 125
//   diff_by_handlers(cube).eval(reals(), 4.0)   // 75
#pragma once

#include <functional>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

#include "lantern/compiler/control/barrier.hpp"

namespace lantern::core::semiring {

/// The operations of a commutative semiring on V.
template <class V>
struct Dictionary {
  V zero, one;
  std::function<V(const V&, const V&)> add, mul;
};

class Evaluation;

/// A value whose type only the evaluation knows.
using Opaque = std::shared_ptr<const void>;

/// A number of whatever semiring an evaluation is about. Opaque; copies are cheap.
class Number {
 public:
  Number() = default;
  Number(std::shared_ptr<Evaluation> evaluation, Opaque value)
      : evaluation_(std::move(evaluation)), value_(std::move(value)) {}

 private:
  friend class Evaluation;
  std::shared_ptr<Evaluation> evaluation_;
  Opaque value_;
};

/// The operations of the evaluation that the numbers belong to. Error if they belong to two, or to one that
/// has ended.
Number operator+(const Number& a, const Number& b);
Number operator*(const Number& a, const Number& b);

/// One evaluation of an expression in one semiring. It sees to it that the expression keeps to its contract:
/// its operations take numbers of this evaluation only, while it lasts, and it captures nothing outside
/// itself, except through the operations it was given (Statement 2.2: any semiring, any representation of
/// numbers, any protocol).
class Evaluation : public std::enable_shared_from_this<Evaluation> {
 public:
  explicit Evaluation(std::source_location l) : place_(l) {}
  virtual ~Evaluation() = default;

  using Body = std::function<Number(const Dictionary<Number>&, const Number&)>;
  /// body(operations, n), inside a barrier. Error where it breaks the contract.
  Number run(const Body& body, Opaque zero, Opaque one, Opaque n);
  /// What a number represents. Error if it is not of this evaluation, or if that has ended.
  const Opaque& value(const Number& number) const;

  /// An operation of the dictionary.
  Number add(const Number& a, const Number& b) { return apply(&Evaluation::add_values, a, b); }
  Number mul(const Number& a, const Number& b) { return apply(&Evaluation::mul_values, a, b); }
  /// The evaluation that two operands belong to. Error if there is none.
  static Evaluation& of(const Number& a, const Number& b);

 protected:
  virtual Opaque add_values(const Opaque& a, const Opaque& b) = 0;
  virtual Opaque mul_values(const Opaque& a, const Opaque& b) = 0;

 private:
  Number number(Opaque v) { return {shared_from_this(), std::move(v)}; }
  Number apply(Opaque (Evaluation::*operation)(const Opaque&, const Opaque&), const Number& a,
               const Number& b);

  std::source_location place_;
  Barrier barrier_;
  bool ended_ = false;
};

/// An expression of one variable: exp.
class Expression {
 public:
  /// `body(operations, x)`; may be called any number of times, in any semiring.
  explicit Expression(Evaluation::Body body) : body_(std::move(body)) {}

  /// The value in the semiring `r` where the variable is n. Error, naming the place of this call, if the
  /// expression does more than apply the operations it is given: see Evaluation.
  template <class V>
  V eval(const Dictionary<V>& r, const std::type_identity_t<V>& n,
         std::source_location l = std::source_location::current()) const {
    struct In : Evaluation {
      In(const Dictionary<V>& d, std::source_location place) : Evaluation(place), r(d) {}
      Opaque add_values(const Opaque& a, const Opaque& b) override { return opaque(r.add(as(a), as(b))); }
      Opaque mul_values(const Opaque& a, const Opaque& b) override { return opaque(r.mul(as(a), as(b))); }
      static Opaque opaque(V v) { return std::make_shared<const V>(std::move(v)); }
      static const V& as(const Opaque& v) { return *static_cast<const V*>(v.get()); }
      const Dictionary<V> r;
    };
    const auto evaluation = std::make_shared<In>(r, l);
    const Number y = evaluation->run(body_, In::opaque(r.zero), In::opaque(r.one), In::opaque(n));
    return In::as(evaluation->value(y));
  }

 private:
  Evaluation::Body body_;
};

}  // namespace lantern::core::semiring

namespace lantern {
namespace semiring = core::semiring;
}
