// interior_point: minima under constraints (constrained.hpp) by Newton's method on the conditions of a
// barrier problem.
//
// Inequalities get slacks, g = s with s > 0; limits, slacks and their multipliers stay positive by the rule
// of the fraction to the boundary. The barrier's weight falls whenever its problem is solved well enough. A
// step is shortened until it lowers the merit function, value and barrier plus a multiple of what constraints
// lack, or the residual of the conditions. The Hessian is shifted until the step has positive curvature, so
// that no factorisation has to tell the inertia. Sources: Nocedal & Wright, "Numerical Optimization", 2nd
// edition 2006, algorithm 19.2; Waechter & Biegler, "On the implementation of an interior-point filter
// line-search algorithm", 2006, for the parameters; Chiang & Zavala, "An inertia-free filter line-search
// algorithm", 2016.
#pragma once

#include "lantern/compiler/solvers/constrained.hpp"
#include "lantern/compiler/solvers/kkt_sparsity.hpp"

namespace lantern::solvers {

/// When a search ends, and how it begins.
struct InteriorPointOptions {
  /// The residual of the optimality conditions is at most this, in the largest norm, multipliers of more than
  /// 100 being scaled to that; 0: 1e-8, of floats 1e-4.
  double tolerance = 0;
  std::int64_t iterations = 200;  ///< at most
  double barrier = 0.1;           ///< its weight at first; less for a start near the solution
  std::source_location place = std::source_location::current();
};

namespace detail {

template <FloatElement E, bool sparse>
class InteriorPoint {
 public:
  InteriorPoint(const Conditions<E>& conditions, const InteriorPointOptions& options, Datums arguments)
      : f_(conditions), options_(options), in_(std::move(arguments)) {}

  /// (z, iterations, converged).
  Datums search(const Vector<E>& x0) const {
    const State done = WHILE(
        begin(x0), [&](const State& s) { return both(s.on, s.steps < options_.iterations); },
        [&](const State& s) { return advance(s); });
    return {f_.z_of(done.z), done.steps.datum(), done.converged.datum()};
  }

 private:
  struct State {
    Kkt<E> z;
    Vector<E> slack;
    Number<E> barrier, penalty, shift;
    Count steps;
    Truth converged, on;
  };
  /// A step of all, how much it curves, and whether there is one.
  struct Step {
    Vector<E> v;
    Number<E> shift, curvature;
    Truth good;
    Count trials;
  };
  /// A point tried: what the value with the barrier is, what constraints lack, and the residual of the
  /// conditions.
  struct Trial {
    Kkt<E> z;
    Vector<E> slack;
    Number<E> share, merit, lack, residual;
    Count halvings;
  };

  static Number<E> sum_of_sizes(const Vector<E>& v) { return sum(abs(v)); }
  Vector<E> lower_there() const { return Conditions<E>::is_limit(Vector<E>(in_[3])); }
  Vector<E> upper_there() const { return Conditions<E>::is_limit(Vector<E>(in_[4])); }

  State begin(const Vector<E>& from) const {
    const Vector<E> lo(in_[3]), hi(in_[4]);
    // Within the limits, a hundredth of their distance away.
    const Vector<E> x = FOR(0, from.dim(0), from, [&](const Count& i, const Vector<E>& v) {
      const Number<E> width = min(hi(i) - lo(i), 1.0), margin = 0.01 * width;
      return v.set(i, max(min(v(i), hi(i) - margin), lo(i) + margin));
    });
    const Vector<E> g = f_.inequalities(x, in_), c = f_.equations(x, in_);
    const Vector<E> slack =
        FOR(0, g.dim(0), g, [&](const Count& i, const Vector<E>& s) { return s.set(i, max(s(i), 1e-2)); });
    const Number<E> mu(options_.barrier);
    const Kkt<E> z{x, zeros_like(c), mu / slack, lower_there() * (mu / f_.above(x, in_)),
                   upper_there() * (mu / f_.below(x, in_))};
    return {z, slack, mu, Number<E>(1.0), Number<E>(0.0), Count(0), Truth(false), Truth(true)};
  }

  /// The residual of the conditions where the products are to be mu, in the largest norm. `slope`: the
  /// gradient of L.
  Number<E> error(const Kkt<E>& z, const Vector<E>& slack, const Vector<E>& slope,
                  const Number<E>& mu) const {
    const Count n(in_[0]), m(in_[1]), p(in_[2]);
    const auto largest = [](const Vector<E>& v) { return Conditions<E>::largest(abs(v)); };
    const Number<E> multipliers =
        sum_of_sizes(z.y) + sum_of_sizes(z.w) + sum_of_sizes(z.lower) + sum_of_sizes(z.upper);
    const Number<E> scale = max(1.0, multipliers / cast<E>(m + p + 2 * n) / 100.0);
    const Number<E> products =
        max(largest(slack * z.w - mu), max(largest(lower_there() * (z.lower * f_.above(z.x, in_) - mu)),
                                           largest(upper_there() * (z.upper * f_.below(z.x, in_) - mu))));
    return max(max(largest(slope.slice(0, n) - z.lower + z.upper) / scale, products / scale),
               max(largest(slope.slice(n, n + m)), largest(slope.slice(n + m, n + m + p) + slack)));
  }

  Trial judged(const Kkt<E>& z, const Vector<E>& slack, const Number<E>& share, const Number<E>& mu,
               const Count& halvings) const {
    const Count n(in_[0]), m(in_[1]), p(in_[2]);
    const Vector<E> slope = f_.gradient(Conditions<E>::v_of(z), in_), above = f_.above(z.x, in_),
                    below = f_.below(z.x, in_);
    const Vector<E> lack = slope.slice(n, n + m), short_of = slope.slice(n + m, n + m + p) + slack;
    const Number<E> merit = f_.value(z.x, in_) - mu * (sum(log(slack)) + sum(log(above)) + sum(log(below)));
    const auto square = [](const Vector<E>& v) { return dot(v, v); };
    const Number<E> residual =
        sqrt(square(slope.slice(0, n) - z.lower + z.upper) + square(lack) + square(short_of) +
             square(slack * z.w - mu) + square(lower_there() * (z.lower * above - mu)) +
             square(upper_there() * (z.upper * below - mu)));
    return {z, slack, share, merit, sum_of_sizes(lack) + sum_of_sizes(short_of), residual, halvings};
  }

  /// Newton's step: the Hessian of L by v, with the barriers' curvature and the shift, times the step is what
  /// the gradient lacks. The shift grows until the step has positive curvature.
  Step newton_step(const State& s, const Vector<E>& slope) const {
    const Count n(in_[0]), m(in_[1]), p(in_[2]);
    const Vector<E> v = Conditions<E>::v_of(s.z), above = f_.above(s.z.x, in_), below = f_.below(s.z.x, in_);
    const Vector<E> barrier = s.z.lower / above + s.z.upper / below;
    const Vector<E> pull = s.barrier * (lower_there() / above - upper_there() / below);
    const auto joined = &Conditions<E>::joined;
    const Vector<E> right = joined(joined(pull, zeros_like(s.z.y)), -s.barrier / s.z.w) - slope;
    const auto matrix = matrix_at(v);
    const auto attempt = [&](const Number<E>& shift, const Count& trials) {
      const Vector<E> diagonal =
          joined(joined(barrier + shift, zeros_like(s.z.y) - rounding<E>), -s.slack / s.z.w);
      const Vector<E> step = matrix.solve(diagonal, right);
      const Vector<E> dx = step.slice(0, n), dw = step.slice(n + m, n + m + p);
      const Vector<E> ds = s.barrier / s.z.w - s.slack - s.slack / s.z.w * dw;
      const Number<E> curvature =
          dot(dx, matrix.times(joined(joined(dx, zeros_like(s.z.y)), zeros_like(s.z.w))).slice(0, n)) +
          dot(dx, (barrier + shift) * dx) + dot(ds, s.z.w / s.slack * ds);
      const Truth good = both(finite(norm(step)), curvature >= 1e-8 * (dot(dx, dx) + dot(ds, ds)));
      return Step{step, shift, curvature, good, trials};
    };
    return WHILE(
        attempt(select(s.shift < 1e-6, Number<E>(0.0), 0.25 * s.shift), Count(0)),
        [](const Step& t) { return both(!t.good, t.trials < 40); },
        [&](const Step& t) { return attempt(max(1e-4, 8.0 * t.shift), t.trials + 1); });
  }

  /// How much of a change leaves a hundredth and less of what is positive.
  static Number<E> share_within(const Vector<E>& from, const Vector<E>& change, const Number<E>& most,
                                const Number<E>& keep) {
    return FOR(0, from.dim(0), most, [&](const Count& i, const Number<E>& share) {
      const Number<E> c = change(i);
      return select(c < 0.0, min(share, -keep * from(i) / c), share);
    });
  }

  State advance(const State& before) const {
    const Count n(in_[0]), m(in_[1]), p(in_[2]);
    const Vector<E> slope = f_.gradient(Conditions<E>::v_of(before.z), in_);
    const Truth solved = error(before.z, before.slack, slope, Number<E>(0.0)) <= options_.tolerance;
    return IF(
        solved,
        [&] {
          State s = before;
          s.converged = Truth(true), s.on = Truth(false);
          return s;
        },
        [&] {
          const Number<E> least = 0.1 * options_.tolerance;
          const Number<E> mu = WHILE(
              before.barrier,
              [&](const Number<E>& b) {
                return both(b > least, error(before.z, before.slack, slope, b) <= 10.0 * b);
              },
              [&](const Number<E>& b) { return max(least, min(0.2 * b, b * sqrt(b))); });
          State s = before;
          s.barrier = mu;
          const Step step = newton_step(s, slope);
          const Vector<E> dx = step.v.slice(0, n), dy = step.v.slice(n, n + m),
                          dw = step.v.slice(n + m, n + m + p);
          const Vector<E> above = f_.above(s.z.x, in_), below = f_.below(s.z.x, in_),
                          has_lower = lower_there(), has_upper = upper_there();
          const Vector<E> ds = mu / s.z.w - s.slack - s.slack / s.z.w * dw;
          const Vector<E> d_lower = has_lower * (mu / above - s.z.lower - s.z.lower / above * dx),
                          d_upper = has_upper * (mu / below - s.z.upper + s.z.upper / below * dx);
          const Number<E> keep = max(0.99, 1.0 - mu), one(1.0);
          const Number<E> primal = share_within(
              above, has_lower * dx,
              share_within(below, -(has_upper * dx), share_within(s.slack, ds, one, keep), keep), keep);
          const Number<E> dual =
              share_within(s.z.lower, d_lower,
                           share_within(s.z.upper, d_upper, share_within(s.z.w, dw, one, keep), keep), keep);
          const auto point = [&](const Number<E>& share) {
            return Kkt<E>{s.z.x + share * dx, s.z.y + share * dy, s.z.w + dual * dw,
                          s.z.lower + dual * d_lower, s.z.upper + dual * d_upper};
          };
          const auto trial = [&](const Number<E>& share, const Count& halvings) {
            return judged(point(share), s.slack + share * ds, share, mu, halvings);
          };
          const Trial here = judged(s.z, s.slack, Number<E>(0.0), mu, Count(0));
          const Kkt<E> alone{s.z.x, zeros_like(s.z.y), zeros_like(s.z.w), s.z.lower, s.z.upper};
          const Vector<E> objective = f_.gradient(Conditions<E>::v_of(alone), in_).slice(0, n);
          const Number<E> fall =
              dot(objective, dx) -
              mu * (dot(has_lower * dx, one / above) - dot(has_upper * dx, one / below) + sum(ds / s.slack));
          const Number<E> wanted = (fall + 0.5 * step.curvature) / (0.9 * max(here.lack, 1e-30));
          const Number<E> penalty =
              select(both(here.lack > 0.0, wanted > s.penalty), 2.0 * wanted, s.penalty);
          const Number<E> slope_of_merit = fall - penalty * here.lack;
          const Number<E> now = here.merit + penalty * here.lack;
          const Trial taken = WHILE(
              trial(primal, Count(0)),
              [&](const Trial& t) {
                const Truth lower = t.merit + penalty * t.lack <=
                                    now + 1e-4 * t.share * slope_of_merit + rounding<E> * abs(now);
                const Truth nearer = t.residual <= (1.0 - 1e-4 * t.share) * here.residual;
                return both(!either(both(lower, slope_of_merit < 0.0), nearer), t.halvings < 40);
              },
              [&](const Trial& t) { return trial(0.5 * t.share, t.halvings + 1); });
          const Truth usable = both(step.good, both(taken.halvings < 40, finite(taken.residual)));
          return IF(
              usable,
              [&] {
                return State{taken.z,    taken.slack, mu,           penalty,
                             step.shift, s.steps + 1, Truth(false), Truth(true)};
              },
              [&] {
                return State{s.z, s.slack, mu, penalty, step.shift, s.steps + 1, Truth(false), Truth(false)};
              });
        });
  }

  static Truth either(const Truth& a, const Truth& b) { return !both(!a, !b); }
  auto matrix_at(const Vector<E>& v) const {
    if constexpr (sparse) {
      const KktPattern prototype;
      return BandKkt<E>(f_, v, in_,
                        core::detail::rebuild(prototype, core::ad::slice(in_, Conditions<E>::own,
                                                                         Conditions<E>::own + pattern_size)));
    } else {
      return DenseKkt<E>(f_, v, in_);
    }
  }
  static constexpr std::size_t pattern_size = 13;  // values of a KktPattern

  const Conditions<E>& f_;
  const InteriorPointOptions& options_;
  Datums in_;
};

}  // namespace detail

/// The x near x0 that makes f(x, a...) smallest under the constraints of a problem:
///
///   solvers::interior_point(solvers::problem(f).equal_zero(c).at_least_zero(g).between(lo, hi), {.tolerance
///   = 1e-8}, x0, a...)
///
/// or without options. x is a number or a vector, a... are any products of Reps. What f, c and g need that is
/// differentiated is passed in a: to capture it is an Error. x0 need not satisfy the constraints; it is moved
/// within the limits. Second derivatives are found by differentiation, dense for up to some hundreds of
/// unknowns and constraints, or by the colours of a sparsity.
///
/// Its derivative, of every order, is that of the optimality conditions, by a dense system of all unknowns
/// and multipliers. It is right where gradients of the constraints that hold with equality are independent,
/// each of those has a multiplier above 0 (strict complementarity), and the minimum is a strict one; at a
/// change of the constraints that hold it is a mean of both sides.
///
/// Not to have converged shows in the result. Errors: an unknown that is a matrix or empty; f that gives no
/// number, c or g that gives a matrix; limits of another size, or a lower limit that does not lie below its
/// upper one.
template <class P, class X, class... A>
requires(detail::IsProblem<P>::value) auto interior_point(const P& problem,
                                                          const InteriorPointOptions& options, const X& x0,
                                                          const A&... a) {
  using Start = core::detail::lifted_t<X>;
  static_assert(
      detail::Unknown<Start>,
      "interior_point: expected x0 to be a Rep<double> or Rep<float>, or an array or tensor of those");
  using E = detail::element_of<Start>;
  InteriorPointOptions chosen = options;
  chosen.tolerance = detail::or_default<E>(options.tolerance, 1e-8, 1e-4);
  return detail::constrained<E>(
      "interior_point",
      [chosen](const detail::Conditions<E>& conditions, const core::Datums& in) {
        const detail::InteriorPoint<E, P::is_sparse> method(conditions, chosen,
                                                            core::ad::slice(in, 1, in.size()));
        return method.search(detail::Vector<E>(in[0]));
      },
      problem, detail::pattern_data(problem.pattern), core::here(options.place),
      core::detail::convert<Start>(x0), core::detail::convert<core::detail::lifted_t<A>>(a)...);
}
LANTERN_SOLVER_WITHOUT_OPTIONS(interior_point, InteriorPointOptions)

}  // namespace lantern::solvers
