// What the solvers of this folder share: the user's function over flattened data, and its derivatives by the
// unknown.
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "lantern/compiler/ad/custom_rule.hpp"
#include "lantern/compiler/ad/jacobian.hpp"
#include "lantern/compiler/solvers/linear.hpp"

namespace lantern::solvers::detail {

using core::Location;
using core::Opcode;
using core::ad::Active;
using core::ad::Program;

inline Datum op(Opcode code, std::initializer_list<Datum> operands, const Location& loc) {
  return core::perform({code, 0, loc}, operands);
}

/// f(x, arguments...) over flattened data. It outlives the frame that makes it.
template <class F, class X, class... A>
Program program_of(F f, const X& x, const A&... arguments) {
  static_assert(std::is_invocable_v<const F&, X&, A&...>,
                "solvers: expected f to take the unknown and the arguments that follow its start");
  using Result = core::detail::lifted_t<std::invoke_result_t<const F&, X&, A&...>>;
  using All = std::tuple<X, A...>;
  const std::string name = core::detail::name_of(f);
  const auto prototypes = std::make_shared<const core::detail::Structure<All>>(All(x, arguments...));
  return {name, [function = core::kept(std::move(f)), prototypes](const Datums& in) {
            All all = core::detail::rebuild(**prototypes, in);
            return core::detail::flatten(core::detail::convert<Result>(std::apply(*function, all)));
          }};
}

/// The unknown of a solver: one number, or one vector, of float or double.
template <class X>
concept Unknown =
    core::detail::RepType<X> && FloatElement<typename core::detail::Traits<typename X::value_type>::element>;
template <Unknown X>
using element_of = typename core::detail::Traits<typename X::value_type>::element;
template <Unknown X>
inline constexpr bool is_number = std::same_as<X, Number<element_of<X>>>;

/// The number itself, or the one for the element where it is 0.
template <FloatElement E>
double or_default(double given, double of_double, double of_float) {
  return given > 0 ? given : std::same_as<E, double> ? of_double : of_float;
}
/// What is lost where numbers of one size are added up, relative to them.
template <FloatElement E>
inline constexpr double rounding = std::same_as<E, double> ? 1e-14 : 5e-6;

/// Error unless x is a number or a vector that has elements.
inline void require_unknown(const std::string& solver, const Datum& x, const Location& loc) {
  const ir::Type& type = x.type();
  if (type.rank() > 1)
    core::raise_at(loc, solver + ": expected the unknown to be a number or a vector, got " + type.str());
  if (type.rank() == 1)
    core::detail::require((Count(core::dimension_of(x, 0, loc)) > 0).datum(),
                          solver + ": expected the unknown to have elements, got an empty vector", loc);
}

/// A number as a vector of one element.
template <FloatElement E>
Vector<E> as_vector(const Datum& y) {
  return y.type().is_tensor() ? Vector<E>(y) : Vector<E>(fill(Number<E>(y), 1).datum());
}
template <class S, FloatElement E>
S from_vector(const Vector<E>& v) {
  if constexpr (is_number<S>)
    return v(0);
  else
    return S(v.datum());
}
/// A function of a number, and more, as one of a vector of one element; so is a number that it gives.
template <FloatElement E>
Program of_vector(const Program& f) {
  return {f.name, [f](Datums in) {
            in[0] = Vector<E>(in[0])(0).datum();
            return Datums{as_vector<E>(f.run(in)[0]).datum()};
          }};
}

/// The first of `at`, which is the unknown, alone.
inline Active first_of(const Datums& at) {
  Active active(at.size(), false);
  active[0] = true;
  return active;
}
/// All that carry a derivative, but for the first.
inline Active rest_of(const Datums& at) {
  Active active;
  for (const Datum& d : at) active.push_back(!active.empty() && d.type().is_differentiable());
  return active;
}
inline bool any(const Active& active) {
  for (const bool a : active)
    if (a) return true;
  return false;
}
inline Datums with_unknown(const Datum& x, const Datums& arguments) {
  return core::ad::joined(Datums{x}, arguments);
}

inline Datum one_like(const Datum& x) { return Datum::number(1.0, ir::Type(x.type().element())); }

/// Of a function that gives one number or vector, by the first of its arguments, a number or vector: the
/// derivative, a number or matrix.
inline Datum jacobian_of(const Program& f, const Datums& at, const Location& loc) {
  if (!at[0].type().is_tensor()) return core::ad::jvp(f, at, first_of(at), {one_like(at[0])}, loc)[1];
  return core::ad::jacobian(f, at, first_of(at), std::nullopt, loc)[0][0];
}

/// Of a function that gives a number: its value and its gradient by the first of its arguments.
inline Datums value_and_gradient(const Program& f, const Datums& at, const Location& loc) {
  return core::ad::vjp(f, at, first_of(at), {one_like(at[0])}, true, loc);
}
/// The gradient by the first of its arguments, as a function of all.
inline Program gradient_of(const Program& f, const Location& loc) {
  return {"gradient_" + f.name, [f, loc](const Datums& at) {
            return core::ad::vjp(f, at, first_of(at), {one_like(at[0])}, false, loc);
          }};
}

/// b / A of numbers, A^-1 b of a matrix and a vector.
inline Datum divided(const Datum& b, const Datum& a, const Location& loc) {
  return a.type().is_tensor() ? solve(a, b, loc) : op(Opcode::div_, {b, a}, loc);
}

/// The Euclidean norm.
template <FloatElement E>
Number<E> norm(const Number<E>& x) {
  return abs(x);
}
template <FloatElement E>
Number<E> norm(const Vector<E>& x) {
  return sqrt(dot(x, x));
}

template <FloatElement E>
Truth finite(const Number<E>& x) {
  return abs(x) < (std::same_as<E, double> ? 1e300 : 1e37);
}

/// What `Options` are not: what is where options may.
template <class T, class Options>
concept Other = !std::same_as<std::remove_cvref_t<T>, Options>;

}  // namespace lantern::solvers::detail

/// `name(f, arguments...)` without options, for up to six arguments: as name(f, {}, arguments...), at the
/// place of the call.
#define LANTERN_SOLVER_WITHOUT_OPTIONS(name, Options)                                                \
  template <class F, detail::Other<Options> A>                                                       \
  auto name(F f, const A& a, std::source_location l = std::source_location::current()) {             \
    return name(std::move(f), Options{.place = l}, a);                                               \
  }                                                                                                  \
  template <class F, detail::Other<Options> A, class B>                                              \
  auto name(F f, const A& a, const B& b, std::source_location l = std::source_location::current()) { \
    return name(std::move(f), Options{.place = l}, a, b);                                            \
  }                                                                                                  \
  template <class F, detail::Other<Options> A, class B, class C>                                     \
  auto name(F f, const A& a, const B& b, const C& c,                                                 \
            std::source_location l = std::source_location::current()) {                              \
    return name(std::move(f), Options{.place = l}, a, b, c);                                         \
  }                                                                                                  \
  template <class F, detail::Other<Options> A, class B, class C, class D>                            \
  auto name(F f, const A& a, const B& b, const C& c, const D& d,                                     \
            std::source_location l = std::source_location::current()) {                              \
    return name(std::move(f), Options{.place = l}, a, b, c, d);                                      \
  }                                                                                                  \
  template <class F, detail::Other<Options> A, class B, class C, class D, class E>                   \
  auto name(F f, const A& a, const B& b, const C& c, const D& d, const E& e,                         \
            std::source_location l = std::source_location::current()) {                              \
    return name(std::move(f), Options{.place = l}, a, b, c, d, e);                                   \
  }                                                                                                  \
  template <class F, detail::Other<Options> A, class B, class C, class D, class E, class G>          \
  auto name(F f, const A& a, const B& b, const C& c, const D& d, const E& e, const G& g,             \
            std::source_location l = std::source_location::current()) {                              \
    return name(std::move(f), Options{.place = l}, a, b, c, d, e, g);                                \
  }
