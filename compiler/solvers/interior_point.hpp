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
    return {f_.z_of(done.at.z), done.steps.datum(), done.converged.datum()};
  }

 private:
  /// A point with its multipliers and slacks, and f and the gradient of L there.
  struct Point {
    Kkt<E> z;
    Vector<E> slack, slope;
    Number<E> value;
  };
  struct State {
    Point at;
    Number<E> barrier, penalty, shift;
    Count steps;
    Truth converged, on;
  };
  /// A step of all, the shift that it took, how much it curves, the slope of f along it, and whether it is
  /// good.
  struct Step {
    Vector<E> v;
    Number<E> shift, curvature, fall;
    Truth good;
    Count trials;
  };
  /// What a point is worth where the products are to be mu.
  struct Worth {
    Number<E> merit, lack,
        residual;  ///< value with the barrier, what constraints lack, the conditions' residual
  };
  struct Trial {
    Point at;
    Number<E> share;
    Count trials;
    Truth accepted;
  };

  Vector<E> lower_there() const { return Conditions<E>::is_limit(Vector<E>(in_[3])); }
  Vector<E> upper_there() const { return Conditions<E>::is_limit(Vector<E>(in_[4])); }

  State begin(const Vector<E>& from) const {
    const Vector<E> lo(in_[3]), hi(in_[4]);
    // Within the limits, a hundredth of their distance away.
    const Vector<E> x = FOR(0, from.dim(0), from, [&](const Count& i, const Vector<E>& v) {
      const Number<E> room = min(hi(i) - lo(i), 1.0), margin = 0.01 * room;
      return v.set(i, max(min(v(i), hi(i) - margin), lo(i) + margin));
    });
    const Vector<E> g = f_.inequalities(x, in_);
    const Vector<E> slack =
        FOR(0, g.dim(0), g, [&](const Count& i, const Vector<E>& v) { return v.set(i, max(v(i), 1e-2)); });
    const Number<E> mu(options_.barrier);
    const Vector<E> y(fill(Number<E>(0.0), Count(in_[1])).datum());
    const Kkt<E> z{x, y, mu / slack, lower_there() * (mu / f_.above(x, in_)),
                   upper_there() * (mu / f_.below(x, in_))};
    return {point(z, slack), mu, Number<E>(1.0), Number<E>(0.0), Count(0), Truth(false), Truth(true)};
  }
  Point point(const Kkt<E>& z, const Vector<E>& slack) const {
    return {z, slack, f_.gradient(Conditions<E>::v_of(z), in_), f_.value(z.x, in_)};
  }

  /// The residual of the conditions where the products are to be mu, in the largest norm.
  Number<E> error(const Point& p, const Number<E>& mu) const {
    const Count n(in_[0]), m(in_[1]), k(in_[2]);
    const auto largest = [](const Vector<E>& v) { return Conditions<E>::largest(abs(v)); };
    const auto& z = p.z;
    const Number<E> multipliers = sum(abs(z.y)) + sum(abs(z.w)) + sum(abs(z.lower)) + sum(abs(z.upper));
    const Number<E> scale = max(1.0, multipliers / cast<E>(m + k + 2 * n) / 100.0);
    const Number<E> of_limits = max(largest(lower_there() * (z.lower * f_.above(z.x, in_) - mu)),
                                    largest(upper_there() * (z.upper * f_.below(z.x, in_) - mu)));
    const Number<E> products = max(largest(p.slack * z.w - mu), of_limits);
    const Number<E> stationary = largest(p.slope.slice(0, n) - z.lower + z.upper);
    return max(max(stationary, products) / scale,
               max(largest(equations_lack(p)), largest(inequalities_lack(p))));
  }
  Vector<E> equations_lack(const Point& p) const {
    const Count n(in_[0]), m(in_[1]);
    return p.slope.slice(n, n + m);
  }
  Vector<E> inequalities_lack(const Point& p) const {
    const Count n(in_[0]), m(in_[1]), k(in_[2]);
    return p.slope.slice(n + m, n + m + k) + p.slack;
  }

  Worth worth(const Point& p, const Number<E>& mu) const {
    const auto& z = p.z;
    const Vector<E> above = f_.above(z.x, in_), below = f_.below(z.x, in_);
    const Vector<E> lack = equations_lack(p), short_of = inequalities_lack(p);
    const Number<E> merit = p.value - mu * (sum(log(p.slack)) + sum(log(above)) + sum(log(below)));
    const auto square = [](const Vector<E>& v) { return dot(v, v); };
    const Number<E> products = square(p.slack * z.w - mu) + square(lower_there() * (z.lower * above - mu)) +
                               square(upper_there() * (z.upper * below - mu));
    const Vector<E> stationary = p.slope.slice(0, Count(in_[0])) - z.lower + z.upper;
    return {merit, sum(abs(lack)) + sum(abs(short_of)),
            sqrt(square(stationary) + square(lack) + square(short_of) + products)};
  }

  /// Newton's step: the Hessian of L by v, with the barriers' curvature and the shift, times the step is what
  /// the gradient lacks. The shift grows until the step has positive curvature.
  Step newton_step(const State& s) const {
    const Count n(in_[0]), m(in_[1]), p(in_[2]);
    const Kkt<E>& z = s.at.z;
    const Vector<E> v = Conditions<E>::v_of(z), above = f_.above(z.x, in_), below = f_.below(z.x, in_);
    const Vector<E> barrier = z.lower / above + z.upper / below, slack = s.at.slack;
    const Vector<E> pull = s.barrier * (lower_there() / above - upper_there() / below);
    const auto joined = [](const Vector<E>& a, const Vector<E>& b, const Vector<E>& c) {
      return Conditions<E>::joined(Conditions<E>::joined(a, b), c);
    };
    const Vector<E> right = joined(pull, zeros_like(z.y), -s.barrier / z.w) - s.at.slope;
    const auto matrix = matrix_at(v);
    const auto attempt = [&](const Number<E>& shift, const Count& trials) {
      const Vector<E> diagonal = joined(barrier + shift, zeros_like(z.y) - rounding<E>, -slack / z.w);
      const Vector<E> step = matrix.solve(diagonal, right);
      const Vector<E> dx = step.slice(0, n), dw = step.slice(n + m, n + m + p);
      const Vector<E> ds = s.barrier / z.w - slack - slack / z.w * dw;
      const Vector<E> image = matrix.times(joined(dx, zeros_like(z.y), zeros_like(z.w))).slice(0, n);
      const Number<E> curvature =
          dot(dx, image) + dot(dx, (barrier + shift) * dx) + dot(ds, z.w / slack * ds);
      const Truth good = both(finite(norm(step)), curvature >= 1e-8 * (dot(dx, dx) + dot(ds, ds)));
      return Step{step, shift, curvature, Number<E>(0.0), good, trials};
    };
    const Number<E> none(0.0), first = select(s.shift < 1e-6, none, 0.25 * s.shift);
    Step found = WHILE(
        Step{zeros_like(right), none, none, none, Truth(false), Count(0)},
        [](const Step& t) { return both(!t.good, t.trials < 40); },
        [&](const Step& t) {
          return attempt(select(t.trials == 0, first, max(1e-4, 8.0 * t.shift)), t.trials + 1);
        });
    // The multipliers' share of the gradient of L is that of the matrix's product with them.
    const Vector<E> of_f =
        s.at.slope.slice(0, n) - matrix.times(joined(zeros_like(z.x), z.y, z.w)).slice(0, n);
    found.fall = dot(of_f, found.v.slice(0, n));
    return found;
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
    return IF(
        error(before.at, Number<E>(0.0)) <= options_.tolerance,
        [&] {
          State s = before;
          s.converged = Truth(true), s.on = Truth(false);
          return s;
        },
        [&] { return step_from(before); });
  }
  State step_from(State s) const {
    const Count n(in_[0]), m(in_[1]), p(in_[2]);
    const Number<E> least = 0.1 * options_.tolerance;
    const Number<E> mu = WHILE(
        s.barrier, [&](const Number<E>& b) { return both(b > least, error(s.at, b) <= 10.0 * b); },
        [&](const Number<E>& b) { return max(least, min(0.2 * b, b * sqrt(b))); });
    s.barrier = mu;
    const Step step = newton_step(s);
    const Kkt<E>& z = s.at.z;
    const Vector<E> slack = s.at.slack, above = f_.above(z.x, in_), below = f_.below(z.x, in_);
    const Vector<E> has_lower = lower_there(), has_upper = upper_there();
    const Vector<E> dx = step.v.slice(0, n), dy = step.v.slice(n, n + m), dw = step.v.slice(n + m, n + m + p);
    const Vector<E> ds = mu / z.w - slack - slack / z.w * dw;
    const Vector<E> d_lower = has_lower * (mu / above - z.lower - z.lower / above * dx),
                    d_upper = has_upper * (mu / below - z.upper + z.upper / below * dx);
    const Number<E> keep = max(0.99, 1.0 - mu), one(1.0);
    const auto within = [&](const Vector<E>& from, const Vector<E>& change, const Number<E>& most) {
      return share_within(from, change, most, keep);
    };
    const Number<E> primal =
        within(above, has_lower * dx, within(below, -(has_upper * dx), within(slack, ds, one)));
    const Number<E> dual = within(z.lower, d_lower, within(z.upper, d_upper, within(z.w, dw, one)));
    const auto at = [&](const Number<E>& share) {
      const Kkt<E> there{z.x + share * dx, z.y + share * dy, z.w + dual * dw, z.lower + dual * d_lower,
                         z.upper + dual * d_upper};
      return point(there, slack + share * ds);
    };
    const Worth here = worth(s.at, mu);
    const Number<E> of_barrier =
        dot(has_lower * dx, one / above) - dot(has_upper * dx, one / below) + sum(ds / slack);
    const Number<E> fall = step.fall - mu * of_barrier;
    const Number<E> wanted = (fall + 0.5 * step.curvature) / (0.9 * max(here.lack, 1e-30));
    const Number<E> penalty = select(both(here.lack > 0.0, wanted > s.penalty), 2.0 * wanted, s.penalty);
    const Number<E> slope_of_merit = fall - penalty * here.lack, now = here.merit + penalty * here.lack;
    const Trial taken = WHILE(
        Trial{s.at, 2.0 * primal, Count(0), Truth(false)},
        [&](const Trial& t) { return both(!t.accepted, t.trials < 40); },
        [&](const Trial& t) {
          const Number<E> share = 0.5 * t.share;
          const Point there = at(share);
          const Worth w = worth(there, mu);
          const Number<E> bound = now + 1e-4 * share * slope_of_merit + rounding<E> * abs(now);
          const Truth lower = both(slope_of_merit < 0.0, w.merit + penalty * w.lack <= bound);
          const Truth nearer = w.residual <= (1.0 - 1e-4 * share) * here.residual;
          return Trial{there, share, t.trials + 1, both(either(lower, nearer), finite(w.residual))};
        });
    return IF(
        both(step.good, taken.accepted),
        [&] { return State{taken.at, mu, penalty, step.shift, s.steps + 1, Truth(false), Truth(true)}; },
        [&] { return State{s.at, mu, penalty, step.shift, s.steps + 1, Truth(false), Truth(false)}; });
  }

  static Truth either(const Truth& a, const Truth& b) { return !both(!a, !b); }
  auto matrix_at(const Vector<E>& v) const {
    if constexpr (sparse) {
      const KktPattern prototype;
      return BandKkt<E>(f_, v, in_,
                        core::detail::rebuild(prototype, core::ad::slice(in_, Conditions<E>::own,
                                                                         Conditions<E>::own + kkt_pattern_size)));
    } else {
      return DenseKkt<E>(f_, v, in_);
    }
  }

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
/// Its derivative, of every order, is that of the optimality conditions, by a system of all unknowns and multipliers:
/// dense, or within the band of a sparsity. It is right where gradients of the constraints that hold with equality are independent,
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
      P::is_sparse ? detail::solve_conditions<E> : nullptr, problem, detail::pattern_data(problem.pattern), core::here(options.place),
      core::detail::convert<Start>(x0), core::detail::convert<core::detail::lifted_t<A>>(a)...);
}
LANTERN_SOLVER_WITHOUT_OPTIONS(interior_point, InteriorPointOptions)

}  // namespace lantern::solvers
