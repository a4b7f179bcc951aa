// Explicit integrators of dy/dt = f(t, y, p...): rk4 by steps of one size, dormand_prince by steps of its
// choice.
//
// Their derivatives are those of the steps taken (discrete adjoint): exact for the numbers computed. The
// sizes of dormand_prince's steps are constants to them; only the last, which ends at t1, follows t0 and t1.
// What is tried is computed on values that carry no derivative, so that an overflow in a step that is
// rejected does no harm to a gradient; a step that is accepted is computed once more, from the values
// themselves. A stage that meets a kink of f has the slopes of docs/conventions.md there; that a kink was passed between
// stages derivatives do not see.
#pragma once

#include <array>

#include "lantern/compiler/solvers/state.hpp"

namespace lantern::solvers {

/// Of integrators by steps of one size.
struct StepOptions {
  LoopOptions loop{};  ///< what a derivative by reverse mode may keep: {.checkpoints = 20}
  std::source_location place = std::source_location::current();
};

/// The state at t1 by the classical Runge-Kutta method of order 4, `steps` equal steps from y0 at t0:
/// rk4(f, y0, t0, t1, steps, p...), or with StepOptions as the second argument. f(t, y, p...) gives dy/dt, a
/// value of the type of y: a number, an array, a tensor or any product of those, of doubles or of floats.
/// p... are any products; what f captures is differentiated too.
///
/// Errors: steps <= 0, an empty state, a state that is not of doubles or of floats. Source: Kutta 1901;
/// Hairer, Norsett & Wanner, "Solving Ordinary Differential Equations I", 2nd edition 1993, II.1.
template <class F, class Y, class... P>
auto rk4(F f, const StepOptions& options, const Y& y0, const detail::Time<Y>& t0, const detail::Time<Y>& t1,
         const Rep<std::int64_t>& steps, const P&... p) {
  if constexpr (!detail::all_lifted<P...>) {
    return rk4(std::move(f), options, y0, t0, t1, steps,
               core::detail::convert<core::detail::lifted_t<P>>(p)...);
  } else {
    using namespace detail;
    using S = core::detail::lifted_t<Y>;
    using E = state_element<S>;
    const S start = core::detail::convert<S>(y0);
    const Location loc = core::here(options.place);
    require_state("rk4", start, loc);
    core::detail::require((steps > 0).datum(), "rk4: expected one step or more, got {}", loc,
                          std::array{steps.datum()});
    const Number<E> h = (t1 - t0) / cast<E>(steps);
    return FOR(
        0, steps, start,
        [&](const Count& i, const S& y) {
          const Number<E> t = t0 + cast<E>(i) * h;
          const S k1 = rate(f, t, y, p...);
          const S k2 = rate(f, Number<E>(t + 0.5 * h), plus(y, {{0.5 * h, &k1}}), p...);
          const S k3 = rate(f, Number<E>(t + 0.5 * h), plus(y, {{0.5 * h, &k2}}), p...);
          const S k4 = rate(f, Number<E>(t + h), plus(y, {{h, &k3}}), p...);
          return plus(y, {{h / 6.0, &k1}, {h / 3.0, &k2}, {h / 3.0, &k3}, {h / 6.0, &k4}});
        },
        options.loop, options.place);
  }
}
LANTERN_SOLVER_WITHOUT_OPTIONS(rk4, StepOptions)

namespace detail {

/// The states of a step: y + c (change + d (bend + c (twist + d last))), at its share c, where d = 1 - c.
template <class Y>
struct StepPolynomial {
  Y y, change, bend, twist, last;

  template <FloatElement E>
  Y at(const Number<E>& share) const {
    const Number<E> rest = 1.0 - share;
    return plus(y, {{share, &change},
                    {share * rest, &bend},
                    {share * rest * share, &twist},
                    {share * rest * share * rest, &last}});
  }
};

/// The pair of orders 5 and 4 of Dormand & Prince, "A family of embedded Runge-Kutta formulae", 1980.
template <class F, FloatElement E>
struct DormandPrince {
  static constexpr double order = 5;
  const F& f;
  double absolute, relative;

  template <class Y>
  struct Stages {
    Y k3, k4, k5, k6, k7, y;
  };
  template <class Y>
  struct Attempt {
    Number<E> error;
  };

  template <class Y, class... P>
  Stages<Y> stages(const Number<E>& t, const Number<E>& h, const Y& y, const Y& k1, const P&... p) const {
    const auto at = [&](double c) { return Number<E>(t + c * h); };
    const Y k2 = rate(f, at(0.2), plus(y, {{h * 0.2, &k1}}), p...);
    const Y k3 = rate(f, at(0.3), plus(y, {{h * (3.0 / 40), &k1}, {h * (9.0 / 40), &k2}}), p...);
    const Y k4 = rate(
        f, at(0.8), plus(y, {{h * (44.0 / 45), &k1}, {h * (-56.0 / 15), &k2}, {h * (32.0 / 9), &k3}}), p...);
    const Y k5 = rate(f, at(8.0 / 9),
                      plus(y, {{h * (19372.0 / 6561), &k1},
                               {h * (-25360.0 / 2187), &k2},
                               {h * (64448.0 / 6561), &k3},
                               {h * (-212.0 / 729), &k4}}),
                      p...);
    const Y k6 = rate(f, at(1.0),
                      plus(y, {{h * (9017.0 / 3168), &k1},
                               {h * (-355.0 / 33), &k2},
                               {h * (46732.0 / 5247), &k3},
                               {h * (49.0 / 176), &k4},
                               {h * (-5103.0 / 18656), &k5}}),
                      p...);
    const Y next = plus(y, {{h * (35.0 / 384), &k1},
                            {h * (500.0 / 1113), &k3},
                            {h * (125.0 / 192), &k4},
                            {h * (-2187.0 / 6784), &k5},
                            {h * (11.0 / 84), &k6}});
    return {k3, k4, k5, k6, rate(f, at(1.0), next, p...), next};
  }
  template <class Y, class... P>
  Attempt<Y> attempt(const Number<E>& t, const Number<E>& h, const Y& y, const Y& k1, const P&... p) const {
    const Stages<Y> s = stages(t, h, y, k1, p...);
    const Y error = sum_of<Y>({{h * (71.0 / 57600), &k1},
                               {h * (-71.0 / 16695), &s.k3},
                               {h * (71.0 / 1920), &s.k4},
                               {h * (-17253.0 / 339200), &s.k5},
                               {h * (22.0 / 525), &s.k6},
                               {h * (-1.0 / 40), &s.k7}});
    return {relative_error(error, y, s.y, absolute, relative)};
  }
  template <class Y, class... P>
  std::pair<Y, Y> taken(const Attempt<Y>&, const Number<E>& t, const Number<E>& h, const Y& y, const Y& k1,
                        const P&... p) const {
    const Stages<Y> s = stages(t, h, y, k1, p...);
    return {s.y, s.k7};
  }

  /// The states between t and t + h, to order 4: Hairer I, II.6, and the coefficients of its program DOPRI5.
  template <class Y>
  static StepPolynomial<Y> between(const Number<E>& h, const Y& y, const Y& k1, const Stages<Y>& s) {
    const Number<E> one(1.0), minus(-1.0);
    const Y change = plus(s.y, {{minus, &y}});
    const Y bend = sum_of<Y>({{h, &k1}, {minus, &change}});
    const Y twist = sum_of<Y>({{one, &change}, {-h, &s.k7}, {minus, &bend}});
    const Y last = sum_of<Y>({{h * (-12715105075.0 / 11282082432.0), &k1},
                              {h * (87487479700.0 / 32700410799.0), &s.k3},
                              {h * (-10690763975.0 / 1880347072.0), &s.k4},
                              {h * (701980252875.0 / 199316789632.0), &s.k5},
                              {h * (-1453857185.0 / 822651844.0), &s.k6},
                              {h * (69997945.0 / 29380423.0), &s.k7}});
    return {y, change, bend, twist, last};
  }
};

/// Row i of a table of states.
template <FloatElement E>
Rep<core::Array<E>> with_row(const Rep<core::Array<E>>& all, const Count& i, const Number<E>& y) {
  return all.set(i, y);
}
template <FloatElement E, class V>
Matrix<E> with_row(const Matrix<E>& all, const Count& i, const V& y) {
  return FOR(0, all.dim(1), all,
             [&](const Count& j, const Matrix<E>& m) { return m.set(i, j, Vector<E>(y.datum())(j)); });
}
/// States in rows, one for each time: an array where a state is a number, a matrix where it is a vector.
template <Unknown S>
using TableOf = std::conditional_t<is_number<S>, Rep<core::Array<element_of<S>>>, Matrix<element_of<S>>>;
template <Unknown S>
TableOf<S> table_of(const S& state, const Count& rows, const Number<element_of<S>>& value) {
  if constexpr (is_number<S>)
    return fill(value, rows);
  else
    return TableOf<S>(fill(value, rows, Vector<element_of<S>>(state.datum()).dim(0)).datum());
}
/// Row i.
template <Unknown S>
S row_of(const TableOf<S>& table, const Count& i) {
  if constexpr (is_number<S>)
    return table[i];
  else
    return S(Vector<element_of<S>>(table.row(i).datum()).datum());
}

}  // namespace detail

/// The state at t1 from y0 at t0 by the method of Dormand and Prince, of order 5 with steps whose error is
/// estimated by order 4: dormand_prince(f, {.relative = 1e-8}, y0, t0, t1, p...), or without options. f, y
/// and p... as for rk4; t1 may lie before t0. For stiff equations see tr_bdf2.
///
/// Not to have arrived within max_steps shows in the result. Errors: an empty state, one that is not of
/// doubles. Source: Dormand & Prince 1980; step control by Hairer & Wanner, see state.hpp.
template <class F, class Y, class... P>
auto dormand_prince(F f, const OdeOptions& options, const Y& y0, const detail::Time<Y>& t0,
                    const detail::Time<Y>& t1, const P&... p) {
  if constexpr (!detail::all_lifted<P...>) {
    return dormand_prince(std::move(f), options, y0, t0, t1,
                          core::detail::convert<core::detail::lifted_t<P>>(p)...);
  } else {
    using namespace detail;
    using S = core::detail::lifted_t<Y>;
    using E = state_element<S>;
    const S start = core::detail::convert<S>(y0);
    require_state("dormand_prince", start, core::here(options.place));
    const OdeOptions chosen = with_defaults<E>(options);
    const DormandPrince<F, E> method{f, chosen.absolute, chosen.relative};
    const auto end =
        integrate(method, chosen, start, rate(f, t0, start, p...), t0, t1, std::tuple<>(), Nothing(), p...);
    return integrated(end, end.y, t1);
  }
}
LANTERN_SOLVER_WITHOUT_OPTIONS(dormand_prince, OdeOptions)

/// The states at all of `times`, ascending or descending, from y0 at the first of them: row i is that at
/// times[i], a matrix where y is a vector, an array where it is a number. The steps are those of
/// dormand_prince from the first to the last; states between are interpolated to order 4. Where the end is
/// not reached, or times turn back, the states that are missing are NaN, and the result is not finished. Errors: as for dormand_prince, no times, a state that is
/// neither number nor vector.
template <class F, class Y, class... P>
auto dormand_prince_at(F f, const OdeOptions& options, const Y& y0,
                       const Rep<core::Array<detail::state_element<Y>>>& times, const P&... p) {
  if constexpr (!detail::all_lifted<P...>) {
    return dormand_prince_at(std::move(f), options, y0, times,
                             core::detail::convert<core::detail::lifted_t<P>>(p)...);
  } else {
    using namespace detail;
    using S = core::detail::lifted_t<Y>;
    using E = state_element<S>;
    static_assert(
        Unknown<S>,
        "dormand_prince_at: expected a state that is a number, an array or a vector of doubles or of floats");
    using Table = TableOf<S>;
    const S start = core::detail::convert<S>(y0);
    const Location loc = core::here(options.place);
    require_state("dormand_prince_at", start, loc);
    require_unknown("dormand_prince_at", start.datum(), loc);
    core::detail::require((times.size() > 0).datum(),
                          "dormand_prince_at: expected one time or more, got none", loc);
    const Count n = times.size();
    const Number<E> t0 = times[0], t1 = times[n - 1], nan(std::numeric_limits<E>::quiet_NaN());
    const Table table = table_of(start, n, nan);
    using Extra = std::tuple<Table, Count>;  // the table, and how many rows of it are there
    const OdeOptions chosen = with_defaults<E>(options);
    const DormandPrince<F, E> method{f, chosen.absolute, chosen.relative};
    const Number<E> sign = stop_gradient(select(t1 < t0, Number<E>(-1.0), Number<E>(1.0)));
    const auto fill_in = [&](const Extra& extra, const auto&, const Number<E>& t, const Number<E>& h,
                             const Number<E>& end, const S& y, const S& k1, const S&, const S&,
                             const P&... q) {
      const StepPolynomial<S> between = method.between(h, y, k1, method.stages(t, h, y, k1, q...));
      return WHILE(
          extra,
          [&](const Table&, const Count& i) {
            return AND(i < n, [&] { return stop_gradient(sign * (end - times[i])) >= 0.0; });
          },
          [&](const Table& rows, const Count& i) {
            return Extra(with_row(rows, i, between.at((times[i] - t) / h)), i + 1);
          });
    };
    const auto end = integrate(method, chosen, start, rate(f, t0, start, p...), t0, t1,
                               Extra(with_row(table, 0, start), Count(1)), fill_in, p...);
    auto result = integrated(Progress<Table, Extra>{end.t, end.h, end.error, table, table, end.extra, end.steps,
                                                    end.rejected, end.after_rejection, end.on},
                             std::get<0>(end.extra), t1);
    result.finished = AND(result.finished, [&] { return std::get<1>(end.extra) == n; });  // not if times turn back
    return result;
  }
}
LANTERN_SOLVER_WITHOUT_OPTIONS(dormand_prince_at, OdeOptions)

}  // namespace lantern::solvers
