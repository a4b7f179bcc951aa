// States of differential equations: a number, an array, a tensor, or any product of those, of doubles or of
// floats; the time is of the same type.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "lantern/compiler/solvers/program.hpp"
#include "lantern/lantern.hpp"

namespace lantern::solvers {

/// What an integration with steps of its own choice gives.
template <class Y, class I = Rep<std::int64_t>, class B = Rep<bool>>
struct Integrated {
  Y y;         ///< the state at t1; at the last time reached, where it has not finished
  I steps;     ///< accepted
  I rejected;  ///< tried again with a smaller step
  B finished;  ///< false: max_steps were too few, the steps became too small, or f was not finite
};

/// How the steps of an integration are chosen.
struct OdeOptions {
  double relative = 0;              ///< error of a step, relative to the state; 0: 1e-6, of floats 1e-4
  double absolute = 0;              ///< and where the state is near 0; 0: 1e-9, of floats 1e-6
  double first_step = 0;            ///< 0: chosen by the size of f
  std::int64_t max_steps = 10'000;  ///< accepted and rejected together
  LoopOptions loop{};               ///< what a derivative by reverse mode may keep
  std::source_location place = std::source_location::current();
};

namespace detail {

/// Whether no argument is a literal.
template <class... P>
inline constexpr bool all_lifted = (std::same_as<P, core::detail::lifted_t<P>> && ...);

/// What a state consists of: the element of its first component, double where there is none.
template <class Y>
struct ElementOf {
  using type = double;
};
template <class T>
struct ElementOf<Rep<T>> {
  using type =
      std::conditional_t<std::same_as<typename core::detail::Traits<T>::element, float>, float, double>;
};
template <class First, class... More>
struct ElementOf<core::detail::Types<First, More...>> : ElementOf<First> {};
template <core::detail::SequenceType Y>
struct ElementOf<Y> : ElementOf<core::detail::element_type<Y>> {};
template <class Y>
requires(core::detail::TupleType<Y> || core::detail::StructType<Y>) struct ElementOf<Y>
    : ElementOf<core::detail::part_types<Y>> {
};
template <class Y>
using state_element = typename ElementOf<core::detail::lifted_t<Y>>::type;
/// The time of a state.
template <class Y>
using Time = Rep<state_element<Y>>;

template <FloatElement E>
OdeOptions with_defaults(OdeOptions options) {
  options.relative = or_default<E>(options.relative, 1e-6, 1e-4);
  options.absolute = or_default<E>(options.absolute, 1e-9, 1e-6);
  return options;
}

/// Error unless all of the state is of one floating type, and there is some.
template <class Y>
void require_state(const std::string& solver, const Y& y, const Location& loc) {
  const Datums data = core::detail::flatten(y);
  if (data.empty())
    core::raise_at(loc, solver + ": expected a state with at least one number, got an empty one");
  for (const Datum& d : data) {
    constexpr bool single = std::same_as<state_element<Y>, float>;
    if (d.type().element() != (single ? ir::Kind::f32 : ir::Kind::f64) || !d.type().is_differentiable())
      core::raise_at(loc, solver +
                              ": expected a state of doubles or one of floats, got a component of type " +
                              d.type().str());
    for (int k = 0; k < d.type().rank(); ++k)
      core::detail::require((Count(core::dimension_of(d, k, loc)) > 0).datum(),
                            solver + ": expected a state with at least one number, got an empty one", loc);
  }
}

/// The state after f has been evaluated is of the type of the state itself.
template <class Y, class F, FloatElement E, class... P>
Y rate(const F& f, const Number<E>& t, const Y& y, const P&... p) {
  static_assert(
      std::is_invocable_v<const F&, const Number<E>&, const Y&, const P&...>,
      "expected f to take the time, of the state's element type, the state and the arguments that follow");
  static_assert(core::detail::converts<Y, core::detail::result_of<F, const Number<E>, const Y, const P...>>(),
                "expected f to give the derivative of the state: a value of the state's type");
  return core::detail::convert<Y>(f(t, y, p...));
}

template <class Y>
struct Term {
  Time<Y> factor;
  const Y* of;
};

/// The sum of `start` and of factor * of, part by part.
template <class Y>
Y plus(const Y& start, std::initializer_list<Term<Y>> terms) {
  Datums sum = core::detail::flatten(start);
  for (const Term<Y>& term : terms) {
    const Datums parts = core::detail::flatten(*term.of);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const Datum scaled = core::perform_broadcast({Opcode::mul_, 0, {}}, parts[i], term.factor.datum());
      sum[i] = op(Opcode::add_, {sum[i], scaled}, {});
    }
  }
  return core::detail::rebuild(start, sum);
}
/// The sum of factor * of.
template <class Y>
Y sum_of(std::initializer_list<Term<Y>> terms) {
  Datums zero;
  for (const Datum& d : core::detail::flatten(*terms.begin()->of)) zero.push_back(core::zeros_like(d, {}));
  return plus(core::detail::rebuild(*terms.begin()->of, zero), terms);
}

/// The root mean square of error / (absolute + relative max(|a|, |b|)), over all numbers of the state: at
/// most 1 is small enough (Hairer, Norsett & Wanner, "Solving Ordinary Differential Equations I", 2nd edition
/// 1993, II.4).
template <class Y, FloatElement E = state_element<Y>>
Number<E> relative_error(const Y& error, const Y& a, const Y& b, double absolute, double relative) {
  Number<E> squares(0.0), numbers(0.0);
  const Datums e = core::detail::flatten(error), x = core::detail::flatten(a), y = core::detail::flatten(b);
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (!e[i].type().is_tensor()) {
      const Number<E> q =
          Number<E>(e[i]) / (absolute + relative * max(abs(Number<E>(x[i])), abs(Number<E>(y[i]))));
      squares = squares + q * q;
      numbers = numbers + 1.0;
      continue;
    }
    const Vector<E> scale = absolute + relative * max(abs(Vector<E>(x[i])), abs(Vector<E>(y[i])));
    const Vector<E> q = Vector<E>(e[i]) / scale;
    squares = squares + sum(q * q);
    Number<E> count(1.0);
    for (int k = 0; k < e[i].type().rank(); ++k)
      count = count * cast<E>(Count(core::dimension_of(e[i], k, {})));
    numbers = numbers + count;
  }
  return sqrt(squares / numbers);
}

/// A first step: a hundredth of |y| / |f|, both relative to the tolerances (Hairer I, II.4, step a of the
/// algorithm).
template <class Y, FloatElement E = state_element<Y>>
Number<E> first_step(const OdeOptions& options, const Y& y, const Y& slope, const Number<E>& length) {
  if (options.first_step > 0) return min(Number<E>(options.first_step), abs(length));
  const Number<E> d0 = relative_error(y, y, y, options.absolute, options.relative),
                  d1 = relative_error(slope, y, y, options.absolute, options.relative);
  const Number<E> h = select(select(d0 < 1e-5, Truth(true), d1 < 1e-5), Number<E>(1e-6), 0.01 * d0 / d1);
  return min(h, abs(length));
}

/// How an integration is. `slope` is f at t, `extra` what goes along.
template <class Y, class Along>
struct Progress {
  Time<Y> t, h, error;  ///< h is the next step, with its sign; error that of the step before
  Y y, slope;
  Along extra;
  Count steps, rejected;
  Truth after_rejection, on;
};

/// The factor by which the next step is larger, by proportional and integral control of a method whose error
/// is of order `order` (Hairer & Wanner, "Solving Ordinary Differential Equations II", 2nd edition 1996,
/// IV.2).
template <FloatElement E>
Number<E> growth(const Number<E>& error, const Number<E>& error_before, double order) {
  constexpr double memory = 0.04;
  const Number<E> wanted =
      0.9 * pow(max(error, 1e-10), -(1.0 / order - 0.75 * memory)) * pow(error_before, memory);
  return select(finite(error), min(max(wanted, 0.2), 10.0), Number<E>(0.1));
}
/// The same after a step that is not accepted.
template <FloatElement E>
Number<E> shrinkage(const Number<E>& error, double order) {
  return select(finite(error), min(max(0.9 * pow(max(error, 1e-10), -1.0 / order), 0.1), 0.9),
                Number<E>(0.1));
}

/// Whether an integration goes on after a step: not where what goes along has stopped it.
template <class Along>
Truth goes_on(const Along& along) {
  if constexpr (requires { along.stopped; })
    return !along.stopped;
  else
    return Truth(true);
}

/// Integrates from t0 to t1 > or < t0. A method gives, of (t, h, y, slope, p...), an attempt with the members
/// `error`, relative to the tolerances, and what `taken` needs; taken(attempt, t, h, y, slope, p...) gives
/// (y, slope) at the end of a step that is accepted. Derivatives pass through `taken` alone: attempts, and
/// with them the steps' sizes, get values through which none passes.
template <class Method, class Y, class Along, class OnStep, class... P>
Progress<Y, Along> integrate(const Method& method, const OdeOptions& options, const Y& y0, const Y& slope0,
                             const Time<Y>& t0, const Time<Y>& t1, const Along& extra, OnStep on_step,
                             const P&... p) {
  using S = Progress<Y, Along>;
  using E = state_element<Y>;
  const Number<E> length = stop_gradient(t1 - t0),
                  sign = select(length < 0.0, Number<E>(-1.0), Number<E>(1.0));
  const Number<E> h0 = sign * first_step(options, stop_gradient(y0), stop_gradient(slope0), length);
  const S start{t0, h0, Number<E>(1e-4), y0, slope0, extra, Count(0), Count(0), Truth(false), length != 0.0};
  return WHILE(
      start, [&](const S& s) { return both(s.on, s.steps + s.rejected < options.max_steps); },
      [&](const S& s) {
        const Number<E> t = stop_gradient(s.t), rest = stop_gradient(t1) - t;
        const Truth last = abs(s.h) >= abs(rest) * (1.0 - 100 * rounding<E>);
        const Number<E> h = stop_gradient(select(last, rest, s.h));
        const auto attempt =
            method.attempt(t, h, stop_gradient(s.y), stop_gradient(s.slope), stop_gradient(p)...);
        const Number<E> error = stop_gradient(attempt.error);
        return IF(
            error <= 1.0,
            [&] {
              const Number<E> step = select(last, t1 - s.t, h), end = select(last, t1, s.t + h);
              const auto [y, slope] = method.taken(attempt, s.t, step, s.y, s.slope, p...);
              const Number<E> larger = growth(error, s.error, Method::order);
              const Number<E> next = h * select(s.after_rejection, min(larger, 1.0), larger);
              const Along along = on_step(s.extra, attempt, s.t, step, end, s.y, s.slope, y, slope, p...);
              return S{end,         stop_gradient(next), max(error, 1e-4), y,    slope, along,
                       s.steps + 1, s.rejected,          Truth(false),     both(!last, goes_on(along))};
            },
            [&] {
              const Number<E> next = h * shrinkage(error, Method::order);
              return S{s.t,     next,    s.error,        s.y,         s.slope,
                       s.extra, s.steps, s.rejected + 1, Truth(true), t + next != t};
            });
      },
      options.loop, options.place);
}

template <class Y, class Along>
Integrated<Y> integrated(const Progress<Y, Along>& s, const Y& y, const Time<Y>& t1) {
  return {y, s.steps, s.rejected, stop_gradient(s.t) == stop_gradient(t1)};
}

/// What is not looked at on the way.
struct Nothing {
  template <class... A>
  std::tuple<> operator()(const A&...) const {
    return {};
  }
};

}  // namespace detail

}  // namespace lantern::solvers
