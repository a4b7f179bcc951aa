// Functions over Rep in any commutative semiring: evaluation, and every derivative of the product.
//
//   const auto f = [](Rep<double> a, Rep<double> b) { return a * b + a; };
//   over(min_plus(), f)(2.0, 3.0)                 // min(2 + 3, 2) = 2
//   over(polynomials(), f)(X, Y).str()            // "X Y + X"
//   over(polynomials(), grad<0>(f))(X, Y).str()   // "Y + 1"
//
// This is diff : exp -> exp of de Vilhena and Pottier (section 2) for the product: a function written with +
// and * is an expression, and so is its derivative by any mode, which computes with the operations of a level
// below its own. The lowest level is the semiring.
#pragma once

#include "lantern/compiler/ad/derivative.hpp"
#include "lantern/compiler/ad/semiring/expression.hpp"
#include "lantern/compiler/staging/mapped.hpp"
#include "lantern/compiler/staging/staging.hpp"

namespace lantern::core::semiring {

namespace detail {

/// The digits of n to the base 2, the highest first; none for 0. Error, naming `loc`, if n is not a natural
/// number of at most 53 digits.
std::vector<bool> binary(double n, const Location& loc);
/// Error: what is not of a semiring.
[[noreturn]] void refuse_operation(const Operation& op);
[[noreturn]] void refuse_operand(const Datum& d, const Location& loc);

/// The mode of the lowest level: numbers are of a semiring, + and * its operations.
template <class V>
class Bottom : public Mode {
 public:
  explicit Bottom(Dictionary<V> r) : Mode(fresh_number()), r_(std::move(r)) {}
  const char* name() const override { return "evaluation in a semiring"; }

  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    if (op.code != Opcode::add_ && op.code != Opcode::mul_) refuse_operation(op);
    const auto& operation = op.code == Opcode::add_ ? r_.add : r_.mul;
    const V left = value(operands[0], op.loc);
    return datum(operation(left, value(operands[1], op.loc)));
  }

  Datum datum(V v) { return Datum::boxed(new Element(*this, std::move(v)), ir::F64); }
  V value(const Datum& d, const Location& loc) const {
    if (d.is_literal() && d.type() == ir::F64) return natural(d.f(), loc);
    const auto* const element = this->template number_of<Element>(d);
    if (!element) refuse_operand(d, loc);
    return element->value;
  }

 private:
  /// Without a primal: there is no level below.
  struct Element final : TaggedBox {
    Element(Mode& m, V v) : TaggedBox(m, Datum()), value(std::move(v)) {}
    V value;
  };

  /// A number of the program, or of a derivative's rule: n = 1 + ... + 1.
  V natural(double n, const Location& loc) const {
    const std::vector<bool> digits = binary(n, loc);
    if (digits.empty()) return r_.zero;
    V sum = r_.one;
    for (std::size_t i = 1; i < digits.size(); ++i) {
      sum = r_.add(sum, sum);
      if (digits[i]) sum = r_.add(sum, r_.one);
    }
    return sum;
  }

  const Dictionary<V> r_;
};

/// What a Rep is outside: an element of the semiring, or an integer or truth value.
template <class V>
struct Outside {
  template <class R>
  struct Leaf {
    using type = typename R::value_type;
    static_assert(
        std::is_integral_v<type>,
        "over: expected a function of Rep<double>, which become elements of the semiring, of integers and "
        "truth values, and of products of these");
  };
  template <class R>
  requires(std::same_as<R, Rep<double>>) struct Leaf<R> {
    using type = V;
  };
  template <class R>
  using apply = typename Leaf<R>::type;
};

/// A product from another of the same structure: leaf.template operator()<To's leaf>(From's leaf) for each
/// Rep.
template <class To, class From, class Leaf>
To converted(const From& from, const Leaf& leaf) {
  if constexpr (core::detail::RepType<To> || core::detail::RepType<From>) {
    return leaf.template operator()<To>(from);
  } else {
    To to{};
    if constexpr (core::detail::SequenceType<To>) {
      if constexpr (requires { to.resize(from.size()); }) to.resize(from.size());
      auto next = std::begin(to);
      for (const auto& part : from) *next++ = converted<std::iter_value_t<decltype(next)>>(part, leaf);
    } else {
      core::detail::with_parts(to, [&](auto&... parts) {
        core::detail::with_parts(from, [&](const auto&... of) {
          ((parts = converted<std::remove_reference_t<decltype(parts)>>(of, leaf)), ...);
        });
      });
    }
    return to;
  }
}

template <class V, class F, class Params = typename core::detail::FunctionTraits<F>::Params>
class Over;
template <class V, class F, class... P>
class Over<V, F, std::tuple<P...>> {
  using Result = typename core::detail::FunctionTraits<F>::Result;
  template <class Q>
  using Host = core::detail::mapped_t<Q, Outside<V>>;

 public:
  Over(Dictionary<V> r, F f, Location loc) : r_(std::move(r)), f_(std::move(f)), loc_(loc) {}

  Host<Result> operator()(const Host<P>&... p) const {
    const StagingScope at_once(nullptr);
    const core::Evaluation evaluation;
    const auto bottom = std::make_shared<Bottom<V>>(r_);
    const ad::Ending ending{*bottom};
    const auto enter = [&]<class R>(const auto& x) -> R {
      if constexpr (std::same_as<R, Rep<double>>)
        return R(bottom->datum(x));
      else
        return R(x);
    };
    const auto leave = [&]<class T>(const auto& y) -> T {
      if constexpr (std::same_as<std::remove_cvref_t<decltype(y)>, Rep<double>>)
        return bottom->value(y.datum(), loc_);
      else
        return static_cast<T>(y.datum().i());
    };
    return converted<Host<Result>>(core::detail::convert<Result>(f_(converted<P>(p, enter)...)), leave);
  }

 private:
  Dictionary<V> r_;
  F f_;
  Location loc_;
};

}  // namespace detail

/// f in the semiring r: a function of the same structure, with a V in place of every Rep<double>, evaluated
/// at once. A number in f is a natural one, so many ones added up; V has a default value. f may
/// differentiate, nested as deeply as it likes.
///
/// Error, naming the place in f, for operations other than + and * on the numbers it is given, for numbers
/// that are not natural, and for a Rep of elsewhere that f has captured. What is computed of numbers in f
/// alone, before they meet an argument, is computed as numbers are.
template <class V, core::detail::OverReps F>
auto over(Dictionary<V> r, F f, std::source_location l = std::source_location::current()) {
  return detail::Over<V, F>(std::move(r), std::move(f), here(l));
}

/// The expression in the semiring of Reps.
inline Rep<double> evaluate(const Expression& e, const Rep<double>& zero, const Rep<double>& one,
                            const Rep<double>& x) {
  using D = Rep<double>;
  return e.eval(Dictionary<D>{zero, one, [](const D& a, const D& b) { return a + b; },
                              [](const D& a, const D& b) { return a * b; }},
                x);
}

/// diff : exp -> exp by a mode of the product, as grad<O...> takes it (specification: diff.hpp).
template <auto... O>
Expression diff_by_mode(const Expression& e) {
  return Expression([e](const Dictionary<Number>& r, const Number& n) {
    using D = Rep<double>;
    const auto derivative = [&e](const D& zero, const D& one, const D& x) {
      return grad<O...>([&](const D& y) { return evaluate(e, zero, one, y); })(x);
    };
    return over(r, derivative)(r.zero, r.one, n);
  });
}

}  // namespace lantern::core::semiring
