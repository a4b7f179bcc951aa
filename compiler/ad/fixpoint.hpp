// fixpoint(f, x0, args...): the solution of x = f(x, args...), differentiated as such.
#pragma once

#include "lantern/compiler/ad/custom_derivative.hpp"

namespace lantern::core {

/// When an iteration ends.
struct FixpointOptions {
  /// x has converged when |f(x) - x| <= tolerance (1 + |x|), in the Euclidean norm over all of x. 0: 1e-12
  /// where x is double, 1e-6 where it is float. The linear equations of the derivatives are solved to the
  /// same tolerance, relative to their right-hand side.
  double tolerance = 0;
  /// At most so many applications of f.
  std::int64_t iterations = 10'000;
  /// No convergence within those raises; if false, the result is NaN.
  bool raise = true;
  std::source_location place = std::source_location::current();
};

namespace ad {

/// x = f(x, arguments) by iteration from x0, all of whose components are floating. `f` is run after this
/// returns.
Datums fixpoint(const Program& f, const Datums& x0, const Datums& arguments, const FixpointOptions& options);

}  // namespace ad

namespace detail {

template <class X>
concept FixpointState = !std::same_as<X, FixpointOptions>;

template <class F, class X, class... A>
X fixpoint(F f, const FixpointOptions& options, const X& x0, const A&... args) {
  static_assert(std::is_invocable_v<const F&, X&, A&...>,
                "fixpoint: expected f to take x and the arguments that follow x0");
  static_assert(converts<X, result_of<F, X, A...>>(),
                "fixpoint: expected f to give a value of the type of x0");
  const std::string name = name_of(f);
  const auto prototypes = std::make_shared<const Structure<std::tuple<X, A...>>>(std::tuple<X, A...>(x0, args...));
  const auto run = [function = kept(std::move(f)), prototypes](const Datums& in) {
    auto all = rebuild(**prototypes, in);
    return flatten(convert<X>(std::apply(*function, all)));
  };
  Datums arguments;
  (flatten(args, arguments), ...);
  return rebuild(x0, ad::fixpoint({name, run}, flatten(x0), arguments, options));
}

}  // namespace detail

/// The x with x = f(x, args...), by iteration of f from x0: f must be a contraction near it. x and the
/// arguments are any products of Reps, x of floating ones. With FixpointOptions any number of arguments;
/// without, up to four.
///
/// The derivative is that of the solution, not of the steps (implicit function theorem): reverse mode solves
/// w = g + (df/dx)^T w and gives (df/dargs)^T w, forward mode solves dx = (df/dx) dx + (df/dargs) dargs, both
/// by iteration at the solution, and so again for derivatives of higher order. Nothing is kept of the
/// iterations, whatever their number. x0 has the derivative 0: the solution does not depend on it. What f
/// needs that is differentiated is passed as an argument. Where f has a kink at the solution, eagerly and compiled, its
/// slopes there are those of docs/conventions.md: the derivative is that of the equation with these slopes, which need
/// not be one of the solution's to either side.
///
/// Errors: no convergence (see FixpointOptions), also of a derivative's equations; x with a component that is
/// not floating; a captured value that is being differentiated. Source: Christianson, "Reverse accumulation
/// and attractive fixed points", Optimization Methods and Software 3, 1994.
template <class F, class X, class... A>
auto fixpoint(F f, const FixpointOptions& options, const X& x0, const A&... args) {
  return detail::fixpoint(std::move(f), options, detail::convert<detail::lifted_t<X>>(x0),
                          detail::convert<detail::lifted_t<A>>(args)...);
}
template <class F, detail::FixpointState X>
auto fixpoint(F f, const X& x0, std::source_location l = std::source_location::current()) {
  return fixpoint(std::move(f), FixpointOptions{.place = l}, x0);
}
template <class F, detail::FixpointState X, class A>
auto fixpoint(F f, const X& x0, const A& a, std::source_location l = std::source_location::current()) {
  return fixpoint(std::move(f), FixpointOptions{.place = l}, x0, a);
}
template <class F, detail::FixpointState X, class A, class B>
auto fixpoint(F f, const X& x0, const A& a, const B& b,
              std::source_location l = std::source_location::current()) {
  return fixpoint(std::move(f), FixpointOptions{.place = l}, x0, a, b);
}
template <class F, detail::FixpointState X, class A, class B, class C>
auto fixpoint(F f, const X& x0, const A& a, const B& b, const C& c,
              std::source_location l = std::source_location::current()) {
  return fixpoint(std::move(f), FixpointOptions{.place = l}, x0, a, b, c);
}
template <class F, detail::FixpointState X, class A, class B, class C, class D>
auto fixpoint(F f, const X& x0, const A& a, const B& b, const C& c, const D& d,
              std::source_location l = std::source_location::current()) {
  return fixpoint(std::move(f), FixpointOptions{.place = l}, x0, a, b, c, d);
}

}  // namespace lantern::core
