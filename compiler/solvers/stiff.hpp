// tr_bdf2: an integrator of stiff equations dy/dt = f(t, y, p...), by steps of its choice.
//
// A step is the trapezoidal rule to t + g h and the backward differentiation formula of order 2 from there to
// t + h, with g = 2 - sqrt(2) (L-stable). The equations of both stages are solved by Newton's method, with a
// dense Jacobian found by differentiation and factored once a step. Source: Bank et al., "Transient
// simulation of silicon devices and circuits", 1985; Hosea & Shampine, "Analysis and implementation of
// TR-BDF2", 1996, whose estimate of the error this is.
//
// The derivative is that of the steps taken, in which the stages are differentiated by the implicit function
// theorem (implicit.hpp): nothing is kept of Newton's iterations. Steps' sizes are constants, see
// runge_kutta.hpp.
#pragma once

#include <limits>
#include <numbers>

#include "lantern/compiler/solvers/implicit.hpp"
#include "lantern/compiler/solvers/state.hpp"

namespace lantern::solvers {

namespace detail {

template <FloatElement E>
class TrBdf2 {
 public:
  static constexpr double order = 3;

  /// rhs(y, t, p...) = dy/dt, of vectors.
  TrBdf2(Program rhs, const OdeOptions& options)
      : rhs_(std::move(rhs)), options_(options), loc_(core::here(options.place)) {}

  struct Attempt {
    Number<E> error;
    Vector<E> middle, end;  ///< the state at t + g h and at t + h
  };

  template <class S, class... P>
  Attempt attempt(const Number<E>& t, const Number<E>& h, const S& y0, const S& slope, const P&... p) const {
    const Vector<E> y = as_vector<E>(y0.datum()), k1 = as_vector<E>(slope.datum());
    const Datums rest = core::detail::flatten(std::tie(p...));
    const Number<E> dh = diagonal * h;
    const Matrix<E> jacobian(jacobian_of(rhs_, with(y, t, rest), loc_));
    const Count n = y.dim(0);
    const Matrix<E> identity_minus =
        FOR(0, n, Matrix<E>(-dh * jacobian),
            [](const Count& i, const Matrix<E>& m) { return m.set(i, i, 1.0 + m(i, i)); });
    const LU<E> factors = lu(identity_minus);
    const Vector<E> base = y + dh * k1;
    const auto [middle, one] =
        stage(factors, y + (middle_time * h) * k1, base, dh, t + middle_time * h, y, rest);
    const Vector<E> k2 = (middle - base) / dh;
    const Vector<E> base2 = y + (outer_weight * h) * (k1 + k2);
    const Vector<E> guess = middle + ((1.0 - middle_time) * h) * k2;
    const auto [end, two] = stage(factors, guess, base2, dh, t + h, y, rest);
    const Vector<E> k3 = (end - base2) / dh;
    const Vector<E> difference =
        h * (((4 * outer_weight - 1) / 3) * k1 - (1.0 / 3) * k2 + (2 * diagonal / 3) * k3);
    const Number<E> error =
        relative_error(solvers::solve(factors, difference), y, end, options_.absolute, options_.relative);
    return {select(both(one, two), error, std::numeric_limits<E>::infinity()), middle, end};
  }

  template <class S, class... P>
  std::pair<S, S> taken(const Attempt& s, const Number<E>& t, const Number<E>& h, const S& y0, const S& slope,
                        const P&... p) const {
    const Vector<E> y = as_vector<E>(y0.datum()), k1 = as_vector<E>(slope.datum());
    const Datums rest = core::detail::flatten(std::tie(p...));
    const Number<E> dh = diagonal * h;
    const Vector<E> base = y + dh * k1;
    const Vector<E> middle = differentiable(s.middle, base, dh, t + middle_time * h, rest);
    const Vector<E> k2 = (middle - base) / dh;
    const Vector<E> base2 = y + (outer_weight * h) * (k1 + k2);
    const Vector<E> end = differentiable(s.end, base2, dh, t + h, rest);
    return {from_vector<S, E>(end), from_vector<S, E>((end - base2) / dh)};
  }

 private:
  static constexpr double middle_time = 2 - std::numbers::sqrt2, diagonal = middle_time / 2,
                          outer_weight = std::numbers::sqrt2 / 4;

  static Datums with(const Vector<E>& y, const Number<E>& t, const Datums& rest) {
    return core::ad::joined(Datums{y.datum(), t.datum()}, rest);
  }

  /// z with z = base + dh f(t, z, p...), and whether it was found.
  std::pair<Vector<E>, Truth> stage(const LU<E>& factors, const Vector<E>& guess, const Vector<E>& base,
                                    const Number<E>& dh, const Number<E>& t, const Vector<E>& scale,
                                    const Datums& rest) const {
    constexpr double enough = std::same_as<E, double> ? 1e-5 : 1e-2;  // of the error that a step may have
    const auto [z, moved, iterations] = WHILE(
        std::tuple(guess, Number<E>(1.0), Count(0)),
        [&](const Vector<E>&, const Number<E>& last, const Count& k) {
          return both(!(last <= enough), both(k < 12, finite(last)));
        },
        [&](const Vector<E>& at, const Number<E>&, const Count& k) {
          const Vector<E> residual = at - base - dh * Vector<E>(rhs_.run(with(at, t, rest))[0]);
          const Vector<E> step = solvers::solve(factors, residual);
          return std::tuple(Vector<E>(at - step),
                            relative_error(step, scale, at, options_.absolute, options_.relative), k + 1);
        });
    return {z, moved <= enough};
  }

  /// z, the solution of a stage, with its derivative by base, dh, t and p.
  Vector<E> differentiable(const Vector<E>& z, const Vector<E>& base, const Number<E>& dh, const Number<E>& t,
                           const Datums& rest) const {
    const Program residual{
        "stage", [rhs = rhs_](const Datums& in) {  // z, base, dh, t, p...
          Datums at{in[0]};
          at.insert(at.end(), in.begin() + 3, in.end());
          const Vector<E> rate(rhs.run(at)[0]);
          return Datums{(Vector<E>(in[0]) - Vector<E>(in[1]) - Number<E>(in[2]) * rate).datum()};
        }};
    const Program known{"stage", [](const Datums& in) { return Datums{in[0]}; }};
    return Vector<E>(solved_by("tr_bdf2", known, residual, {z.datum()},
                               core::ad::joined(Datums{base.datum(), dh.datum(), t.datum()}, rest),
                               Equations::dense, loc_)[0]);
  }

  Program rhs_;
  OdeOptions options_;
  Location loc_;
};

}  // namespace detail

/// The state at t1 from y0 at t0, of a stiff equation: tr_bdf2(f, {.relative = 1e-6}, y0, t0, t1, p...), or
/// without options. f(t, y, p...) gives dy/dt; y is a number or a vector of doubles or floats, p... any
/// products of Reps. What f needs that is differentiated is passed in p: to capture it is an Error. The
/// Jacobian is dense, for up to some hundreds of unknowns. The order is 2: for accuracy beyond 1e-8 without
/// stiffness take dormand_prince.
///
/// Not to have arrived within max_steps shows in the result. Errors: an empty state, one that is neither a
/// number nor a vector.
template <class F, class Y, class... P>
auto tr_bdf2(F f, const OdeOptions& options, const Y& y0, const detail::Time<Y>& t0,
             const detail::Time<Y>& t1, const P&... p) {
  if constexpr (!detail::all_lifted<P...>) {
    return tr_bdf2(std::move(f), options, y0, t0, t1, core::detail::convert<core::detail::lifted_t<P>>(p)...);
  } else {
    using namespace detail;
    using S = core::detail::lifted_t<Y>;
    using E = state_element<S>;
    static_assert(Unknown<S>,
                  "tr_bdf2: expected a state that is a number, an array or a vector of doubles or floats");
    const S start = core::detail::convert<S>(y0);
    const Location loc = core::here(options.place);
    require_state("tr_bdf2", start, loc);
    require_unknown("tr_bdf2", start.datum(), loc);
    const auto swapped = [f](const S& y, const Number<E>& t, const auto&... q) {
      return rate(f, t, y, q...);
    };
    Program rhs = program_of(swapped, start, t0, p...);
    // By a rule, which sees what f captures: a stage's equations are first met when it is too late.
    const Datums at = core::detail::flatten(std::tie(start, t0, p...));
    Active active;
    for (const Datum& d : at) active.push_back(d.type().is_differentiable());
    const S slope(core::ad::call_with_rule(core::ad::rule_of(rhs, "tr_bdf2", active, loc), at, loc)[0]);
    if constexpr (is_number<S>) rhs = of_vector<E>(rhs);
    const OdeOptions chosen = with_defaults<E>(options);
    const TrBdf2<E> method(rhs, chosen);
    const auto end = integrate(method, chosen, start, slope, t0, t1, std::tuple<>(), Nothing(), p...);
    return integrated(end, end.y, t1);
  }
}
LANTERN_SOLVER_WITHOUT_OPTIONS(tr_bdf2, OdeOptions)

}  // namespace lantern::solvers
