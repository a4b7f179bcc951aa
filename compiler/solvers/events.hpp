// dormand_prince_events: times at which g(t, y(t), p...) = 0 along a solution of dy/dt = f(t, y, p...).
//
// After each accepted step the sign of g is compared with that before it; where it has changed, the root lies
// on the step's polynomial (Hairer, Norsett & Wanner, "Solving Ordinary Differential Equations I", 2nd
// edition 1993, II.6), and is found by bisection. Its derivative, of every order, is that of the equation: dt
// = -dg / (dg/dt along the solution), by the implicit function theorem. Two changes of the sign within one
// step are not seen.
#pragma once

#include "lantern/compiler/solvers/implicit.hpp"
#include "lantern/compiler/solvers/runge_kutta.hpp"

namespace lantern::solvers {

/// Which changes of the sign of g are events, in the direction of the integration.
enum class Crossing { either, rising, falling };

struct EventOptions {  ///< what counts as an event, and how many are kept
  Crossing crossing = Crossing::either;
  bool terminal = true;    ///< the first event ends the integration
  std::int64_t most = 16;  ///< events that are kept
  OdeOptions ode{};        ///< how steps are chosen; its place is not used
  std::source_location place = std::source_location::current();
};

/// What an integration with events gives.
template <class Y, class T = Rep<double>, class Times = Rep<core::Array<double>>,
          class Table = Rep<core::Tensor<double>>, class I = Rep<std::int64_t>, class B = Rep<bool>>
struct Events {
  T t;  ///< where the integration ended: a terminal event, or t1; the last time reached, where it has not
        ///< finished
  Y y;  ///< the state there
  Times times;   ///< of the first `most` events; NaN beyond their count
  Table states;  ///< there: row i at times[i]; an array where y is a number
  I count;       ///< of events, those that are not kept included
  I steps;       ///< accepted
  I rejected;    ///< tried again with a smaller step
  B finished;    ///< false: as for dormand_prince
};

namespace detail {

/// How far through a step g has its root, a number from 0 to 1.
template <FloatElement E, class G, class Y, class... P>
Number<E> share_of_root(const G& g, const Number<E>& t, const Number<E>& h, const StepPolynomial<Y>& step,
                        const Location& loc, const P&... p) {
  const auto residual = [g](const Number<E>& share, const Number<E>& start, const Number<E>& length,
                            const StepPolynomial<Y>& s, const P&... q) {
    return Number<E>(g(Number<E>(start + share * length), s.at(share), q...));
  };
  const Program equation = program_of(residual, Number<E>(0.0), t, h, step, p...);
  const Program search{"event", [equation](const Datums& in) {
                         const auto value = [&](const Number<E>& share) {
                           return Number<E>(equation.run(with_unknown(share.datum(), in))[0]);
                         };
                         const Truth negative = value(Number<E>(0.0)) < 0.0;
                         const auto [lo, hi, k] = WHILE(
                             std::tuple(Number<E>(0.0), Number<E>(1.0), Count(0)),
                             [](const Number<E>& a, const Number<E>& b, const Count& iterations) {
                               return both(b - a > 0.0, iterations < (std::same_as<E, double> ? 54 : 26));
                             },
                             [&](const Number<E>& a, const Number<E>& b, const Count& iterations) {
                               const Number<E> middle = 0.5 * (a + b);
                               const Truth before = (value(middle) < 0.0) == negative;
                               return std::tuple(select(before, middle, a), select(before, b, middle),
                                                 iterations + 1);
                             });
                         return Datums{hi.datum()};
                       }};
  return Number<E>(solved_by("dormand_prince_events", search, equation, {},
                             core::detail::flatten(std::tie(t, h, step, p...)), Equations::dense, loc)[0]);
}

}  // namespace detail

/// The events along the solution from y0 at t0 to t1, and where it ends: dormand_prince_events(f, {.terminal
/// = false}, g, y0, t0, t1, p...), or without options. An event is a change of the sign of g(t, y, p...), a
/// number; from 0 on there is none, so that what begins at a root leaves it. f, y and p... as for
/// dormand_prince, y a number or a vector. What g needs that is differentiated is passed in p: to capture it
/// is an Error.
///
/// By the time of an event and the state there derivatives pass as they do by a formula; where g has a root
/// of order 2 (the solution touches the event), they are infinite. At a kink of f or g its slopes are those of
/// docs/conventions.md, eagerly and compiled; check_derivative tells of it. What is done at an event, such as a ball
/// that bounces, is written between two calls, in a FOR. Errors: as for dormand_prince; most < 1; a state
/// that is neither a number nor a vector.
template <class F, class G, class Y, class... P>
auto dormand_prince_events(F f, const EventOptions& options, G g, const Y& y0, const detail::Time<Y>& t0,
                           const detail::Time<Y>& t1, const P&... p) {
  if constexpr (!detail::all_lifted<P...>) {
    return dormand_prince_events(std::move(f), options, std::move(g), y0, t0, t1,
                                 core::detail::convert<core::detail::lifted_t<P>>(p)...);
  } else {
    using namespace detail;
    using S = core::detail::lifted_t<Y>;
    using E = state_element<S>;
    static_assert(Unknown<S>,
                  "dormand_prince_events: expected a state that is a number, an array or a vector of doubles "
                  "or of floats");
    static_assert(
        std::is_convertible_v<std::invoke_result_t<const G&, const Number<E>&, const S&, const P&...>,
                              Number<E>>,
        "dormand_prince_events: expected g to take the time, the state and the arguments that follow, and to "
        "give a number");
    const S start = core::detail::convert<S>(y0);
    const Location loc = core::here(options.place);
    require_state("dormand_prince_events", start, loc);
    require_unknown("dormand_prince_events", start.datum(), loc);
    if (options.most < 1)
      core::raise_at(loc, "dormand_prince_events: expected one event or more to be kept, got most = " +
                              std::to_string(options.most));
    OdeOptions chosen = with_defaults<E>(options.ode);
    chosen.place = options.place;
    const DormandPrince<F, E> method{f, chosen.absolute, chosen.relative};
    struct Extra {
      Number<E> t;
      S y;
      Rep<core::Array<E>> times;
      TableOf<S> states;
      Count count;
      Number<E> before;  // g at the last step's end
      Truth stopped;
    };
    const auto value = [&](const Number<E>& t, const S& y, const P&... q) {
      return stop_gradient(Number<E>(g(t, y, q...)));
    };
    const Number<E> nan(std::numeric_limits<E>::quiet_NaN());
    const Extra first{t0,
                      start,
                      fill(nan, options.most),
                      table_of(start, Count(options.most), nan),
                      Count(0),
                      value(t0, start, p...),
                      Truth(false)};
    const auto look = [&](const Extra& e, const auto&, const Number<E>& t, const Number<E>& h,
                          const Number<E>& end, const S& y, const S& k1, const S& next, const S&,
                          const P&... q) {
      const Number<E> now = value(end, next, q...);
      const Truth rises = both(e.before < 0.0, now >= 0.0), falls = both(e.before > 0.0, now <= 0.0);
      const Truth event = options.crossing == Crossing::rising    ? rises
                          : options.crossing == Crossing::falling ? falls
                                                                  : !both(!rises, !falls);
      return IF(
          event,
          [&] {
            const StepPolynomial<S> step = method.between(h, y, k1, method.stages(t, h, y, k1, q...));
            const Number<E> share = share_of_root<E>(g, t, h, step, loc, q...);
            const Number<E> when = t + share * h;
            const S there = step.at(share);
            const auto kept = IF(
                e.count < options.most,
                [&] { return std::tuple(e.times.set(e.count, when), with_row(e.states, e.count, there)); },
                [&] { return std::tuple(e.times, e.states); });
            return Extra{when,        there, std::get<0>(kept),      std::get<1>(kept),
                         e.count + 1, now,   Truth(options.terminal)};
          },
          [&] { return Extra{e.t, e.y, e.times, e.states, e.count, now, Truth(false)}; });
    };
    const auto end = integrate(method, chosen, start, rate(f, t0, start, p...), t0, t1, first, look, p...);
    const Extra& e = end.extra;
    const auto [t, y] = IF(
        e.stopped, [&] { return std::tuple(e.t, e.y); }, [&] { return std::tuple(end.t, end.y); });
    const Truth arrived = stop_gradient(end.t) == stop_gradient(t1);
    return Events<S, Number<E>, Rep<core::Array<E>>, TableOf<S>>{
        t, y, e.times, e.states, e.count, end.steps, end.rejected, !both(!e.stopped, !arrived)};
  }
}
LANTERN_SOLVER_WITHOUT_OPTIONS(dormand_prince_events, EventOptions)

}  // namespace lantern::solvers
