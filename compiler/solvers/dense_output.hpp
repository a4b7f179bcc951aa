// dormand_prince_dense: a solution of dy/dt = f(t, y, p...) as a function of the time.
#pragma once

#include "lantern/compiler/solvers/runge_kutta.hpp"

namespace lantern::solvers {

namespace detail {

/// The polynomials of an integration's steps.
template <class Y>
struct DenseOf {
  using E = state_element<Y>;

  Rep<core::Array<E>> times;  ///< the start of each step and the end of the last; NaN after that
  TableOf<Y> y, change, bend, twist, last;  ///< by steps, see StepPolynomial
  Count steps;                              ///< accepted
  Count rejected;                           ///< tried again with a smaller step
  Truth finished;                           ///< whether t1 was reached

  /// The state at a time between t0 and t1, to order 4; beyond them, the polynomial of the first or last step
  /// goes on. NaN where no step was made.
  Y operator()(const Number<E>& t) const {
    const Number<E> sign = select(times[steps] < times[0], Number<E>(-1.0), Number<E>(1.0));
    // The last step that begins at t or before, by bisection.
    const auto [step, end] = WHILE(
        std::tuple(Count(0), max(steps, 1)), [](const Count& lo, const Count& hi) { return hi - lo > 1; },
        [&](const Count& lo, const Count& hi) {
          const Count middle = (lo + hi) / 2;
          const Truth after = stop_gradient(sign * (t - times[middle])) >= 0.0;
          return std::tuple(select(after, middle, lo), select(after, hi, middle));
        });
    const Count i = step;
    const StepPolynomial<Y> between{row_of<Y>(y, i), row_of<Y>(change, i), row_of<Y>(bend, i),
                                    row_of<Y>(twist, i), row_of<Y>(last, i)};
    return between.at((t - times[i]) / (times[i + 1] - times[i]));
  }
};

}  // namespace detail

/// The solution from t0 to t1 as a function of the time: auto y = dormand_prince_dense(f, {.max_steps = 200},
/// y0, t0, t1, p...); y(t). It keeps max_steps polynomials, which the default makes 1000; f and p... as for
/// dormand_prince, y a number or a vector. y(t) is differentiated by the time and by all that the solution
/// depends on; its slope by t is that of the polynomial, of order 3. Errors: as for dormand_prince; a state
/// that is neither a number nor a vector.
template <class F, class Y, class... P>
auto dormand_prince_dense(F f, const OdeOptions& options, const Y& y0, const detail::Time<Y>& t0,
                          const detail::Time<Y>& t1, const P&... p) {
  if constexpr (!detail::all_lifted<P...>) {
    return dormand_prince_dense(std::move(f), options, y0, t0, t1,
                                core::detail::convert<core::detail::lifted_t<P>>(p)...);
  } else {
    using namespace detail;
    using S = core::detail::lifted_t<Y>;
    using E = state_element<S>;
    static_assert(Unknown<S>,
                  "dormand_prince_dense: expected a state that is a number, an array or a vector of doubles "
                  "or of floats");
    const S start = core::detail::convert<S>(y0);
    const Location loc = core::here(options.place);
    require_state("dormand_prince_dense", start, loc);
    require_unknown("dormand_prince_dense", start.datum(), loc);
    OdeOptions chosen = with_defaults<E>(options);
    if (options.max_steps == OdeOptions{}.max_steps) chosen.max_steps = 1000;
    if (chosen.max_steps < 1)
      core::raise_at(loc, "dormand_prince_dense: expected one step or more, got max_steps = " +
                              std::to_string(chosen.max_steps));
    const DormandPrince<F, E> method{f, chosen.absolute, chosen.relative};
    struct Extra {
      Rep<core::Array<E>> times;
      TableOf<S> y, change, bend, twist, last;
      Count steps;
    };
    const Number<E> nan(std::numeric_limits<E>::quiet_NaN());
    const TableOf<S> empty = table_of(start, Count(chosen.max_steps), nan);
    const Extra first{
        fill(nan, chosen.max_steps + 1).set(0, t0), empty, empty, empty, empty, empty, Count(0)};
    const auto keep = [&](const Extra& e, const auto&, const Number<E>& t, const Number<E>& h,
                          const Number<E>& end, const S& y, const S& k1, const S&, const S&, const P&... q) {
      const StepPolynomial<S> s = method.between(h, y, k1, method.stages(t, h, y, k1, q...));
      return Extra{e.times.set(e.steps + 1, end),
                   with_row(e.y, e.steps, s.y),
                   with_row(e.change, e.steps, s.change),
                   with_row(e.bend, e.steps, s.bend),
                   with_row(e.twist, e.steps, s.twist),
                   with_row(e.last, e.steps, s.last),
                   e.steps + 1};
    };
    const auto end = integrate(method, chosen, start, rate(f, t0, start, p...), t0, t1, first, keep, p...);
    const Extra& e = end.extra;
    return DenseOf<S>{e.times,   e.y,          e.change,
                      e.bend,    e.twist,      e.last,
                      end.steps, end.rejected, stop_gradient(end.t) == stop_gradient(t1)};
  }
}
LANTERN_SOLVER_WITHOUT_OPTIONS(dormand_prince_dense, OdeOptions)

}  // namespace lantern::solvers
