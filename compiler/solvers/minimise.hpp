// Minima of f(x, a...): lbfgs, by gradients, and newton_cg, by products of the Hessian with vectors.
//
// The derivative of a minimum is that of its equation df/dx = 0, by the implicit function theorem, of every
// order (implicit.hpp). Its linear equations are solved by conjugate gradients on the Hessian, of which only
// products with vectors are formed: so the Hessian at the minimum has to be positive definite. It is as
// accurate as the equation holds, see `tolerance`.
#pragma once

#include "lantern/compiler/solvers/implicit.hpp"

namespace lantern::solvers {

/// When a search ends, and what it remembers.
struct MinimiseOptions {
  /// |df/dx| is at most tolerance (1 + |f|), in the Euclidean norm; 0: 1e-8, of floats 1e-4.
  double tolerance = 0;
  std::int64_t iterations = 1000;  ///< at most
  std::int64_t history = 10;       ///< lbfgs: pairs of steps and changes of the gradient that are kept
  std::source_location place = std::source_location::current();
};

/// What was found.
template <class X, class T = Rep<double>, class I = Rep<std::int64_t>, class B = Rep<bool>>
struct Minimum {
  X x;           ///< the last point, also where the search has not converged
  T value;       ///< f there
  I iterations;  ///< taken
  B converged;   ///< within the tolerance
};

namespace detail {

/// A point, and what f is there.
template <FloatElement E>
struct Place {
  Vector<E> x;
  Number<E> value;
  Vector<E> gradient;
};

template <FloatElement E>
class Objective {
 public:
  /// f(x, arguments...) of a vector x.
  Objective(Program f, Datums arguments, Location loc)
      : f_(std::move(f)), arguments_(std::move(arguments)), loc_(std::move(loc)) {}
  Place<E> at(const Vector<E>& x) const {
    const Datums both_of = value_and_gradient(f_, with_unknown(x.datum(), arguments_), loc_);
    return {x, Number<E>(both_of[0]), Vector<E>(both_of[1])};
  }
  /// The Hessian at x times v.
  Vector<E> hessian_times(const Vector<E>& x, const Vector<E>& v) const {
    const Datums at = with_unknown(x.datum(), arguments_);
    return Vector<E>(core::ad::jvp(gradient_of(f_, loc_), at, first_of(at), {v.datum()}, loc_)[1]);
  }

 private:
  Program f_;
  Datums arguments_;
  Location loc_;
};

template <FloatElement E>
Truth at_rest(const Place<E>& p, const MinimiseOptions& options) {
  return norm(p.gradient) <= options.tolerance * (1.0 + abs(p.value));
}

/// A point along `direction` where f is enough smaller and its slope enough flatter, and whether there is
/// one: the weak Wolfe conditions by bisection (Lewis & Overton, "Nonsmooth optimization via quasi-Newton
/// methods", Mathematical Programming 141, 2013, algorithm 2.6). A rise of f by rounding is no rise (Hager &
/// Zhang 2005).
template <FloatElement E>
std::pair<Place<E>, Truth> line_search(const Objective<E>& f, const Place<E>& from,
                                       const Vector<E>& direction, const Number<E>& first) {
  const Number<E> slope = dot(from.gradient, direction);
  struct Search {
    Number<E> low, high, share;
    Place<E> there;
    Count iterations;
    Truth found;
  };
  const auto judged = [&](const Number<E>& low, const Number<E>& high, const Number<E>& share,
                          const Count& iterations) {
    const Place<E> p = f.at(from.x + share * direction);
    const Truth lower = p.value <= from.value + 1e-4 * share * slope + rounding<E> * abs(from.value);
    const Truth flatter = dot(p.gradient, direction) >= 0.9 * slope;
    return Search{select(lower, share, low), select(lower, high, share), share, p, iterations,
                  both(lower, flatter)};
  };
  const Number<E> endless(std::numeric_limits<E>::infinity());
  const Search done = WHILE(
      judged(Number<E>(0.0), endless, first, Count(0)),
      [](const Search& s) { return both(!s.found, s.iterations < 60); },
      [&](const Search& s) {
        const Number<E> share = select(finite(s.high), 0.5 * (s.low + s.high), 2.0 * s.low);
        return judged(s.low, s.high, share, s.iterations + 1);
      });
  return {done.there, done.found};
}

/// The last steps and changes of the gradient, in rows that are used in turn.
template <FloatElement E>
struct History {
  Matrix<E> steps, changes;
  Count used;  ///< so far; the last `rows` of them are kept
};

/// minus the inverse Hessian, as the history has it, times the gradient: Nocedal & Wright, "Numerical
/// Optimization", 2nd edition 2006, algorithm 7.4.
template <FloatElement E>
Vector<E> quasi_newton_direction(const History<E>& h, const Vector<E>& gradient, std::int64_t rows) {
  const Count kept = min(h.used, rows);
  const auto row = [&](const Count& back) { return Count((h.used - 1 - back) % rows); };
  const auto [q, weights] = FOR(0, kept, std::tuple(gradient, fill(Number<E>(0.0), rows)),
                                [&](const Count& i, const Vector<E>& v, const Rep<core::Array<E>>& w) {
                                  const Vector<E> s = h.steps.row(row(i)), y = h.changes.row(row(i));
                                  const Number<E> weight = dot(s, v) / dot(s, y);
                                  return std::tuple(Vector<E>(v - weight * y), w.set(row(i), weight));
                                });
  const Vector<E> scaled = IF(
      kept > 0,
      [&, q = q] {
        const Vector<E> s = h.steps.row(row(Count(0))), y = h.changes.row(row(Count(0)));
        return Vector<E>(dot(s, y) / dot(y, y) * q);
      },
      [&, q = q] { return Vector<E>(q); });
  return -FOR(0, kept, scaled, [&, weights = weights](const Count& i, const Vector<E>& v) {
    const Count r = row(kept - 1 - i);
    const Vector<E> s = h.steps.row(r), y = h.changes.row(r);
    return Vector<E>(v + (weights[r] - dot(y, v) / dot(s, y)) * s);
  });
}

template <FloatElement E>
Matrix<E> with_row_of(const Matrix<E>& m, const Count& i, const Vector<E>& v) {
  return FOR(0, v.dim(0), m, [&](const Count& j, const Matrix<E>& all) { return all.set(i, j, v(j)); });
}

/// (x, iterations, converged) from (x0, arguments...).
template <FloatElement E>
Datums lbfgs(const Program& f, const Datums& in, const MinimiseOptions& options, const Location& loc) {
  const Objective<E> objective(f, core::ad::slice(in, 1, in.size()), loc);
  struct State {
    Place<E> now;
    History<E> history;
    Count iterations;
    Truth on;
  };
  const Vector<E> x0(in[0]);
  const Place<E> first = objective.at(x0);
  const Matrix<E> empty(fill(Number<E>(0.0), options.history, x0.dim(0)).datum());
  const State done = WHILE(
      State{first, {empty, empty, Count(0)}, Count(0), !at_rest(first, options)},
      [&](const State& s) { return both(s.on, s.iterations < options.iterations); },
      [&](const State& s) {
        const Vector<E> direction = quasi_newton_direction(s.history, s.now.gradient, options.history);
        const Number<E> share =
            select(s.history.used > 0, Number<E>(1.0), min(1.0, 1.0 / norm(s.now.gradient)));
        const auto [next, found] = line_search(objective, s.now, direction, share);
        const Vector<E> step = next.x - s.now.x, change = next.gradient - s.now.gradient;
        const Truth curved = dot(step, change) > rounding<E> * norm(step) * norm(change);
        const Count row = s.history.used % options.history;
        const History<E> history = IF(
            curved,
            [&] {
              return History<E>{with_row_of(s.history.steps, row, step),
                                with_row_of(s.history.changes, row, change), s.history.used + 1};
            },
            [&] { return s.history; });
        return IF(
            found,
            [&, there = next] {
              return State{there, history, s.iterations + 1, !at_rest(there, options)};
            },
            [&] {
              return State{s.now, history, s.iterations + 1, Truth(false)};
            });
      });
  return {done.now.x.datum(), done.iterations.datum(), at_rest(done.now, options).datum()};
}

/// A direction p with H p = -g, as exactly as pays, or one in which f is not convex: Nocedal & Wright,
/// algorithm 7.1.
template <FloatElement E>
Vector<E> truncated_newton_direction(const Objective<E>& f, const Place<E>& now) {
  struct State {
    Vector<E> p, residual, direction;
    Number<E> square;
    Count iterations;
    Truth on;
  };
  const Number<E> size = norm(now.gradient), enough = min(0.5, sqrt(size)) * size;
  const Vector<E> minus = -now.gradient;
  const State done = WHILE(
      State{zeros_like(minus), now.gradient, minus, dot(minus, minus), Count(0), Truth(true)},
      [&](const State& s) {
        return both(both(s.on, sqrt(s.square) > enough), s.iterations < 2 * minus.dim(0) + 10);
      },
      [&](const State& s) {
        const Vector<E> image = f.hessian_times(now.x, s.direction);
        const Number<E> curvature = dot(s.direction, image);
        const Number<E> step = s.square / curvature;
        const Vector<E> residual = s.residual + step * image;
        const Number<E> square = dot(residual, residual);
        return IF(
            curvature > 0.0,
            [&] {
              return State{s.p + step * s.direction,
                           residual,
                           square / s.square * s.direction - residual,
                           square,
                           s.iterations + 1,
                           Truth(true)};
            },
            [&] {
              const Vector<E> p = IF(
                  s.iterations == 0, [&] { return Vector<E>(minus); }, [&] { return Vector<E>(s.p); });
              return State{p, s.residual, s.direction, s.square, s.iterations + 1, Truth(false)};
            });
      });
  return done.p;
}

template <FloatElement E>
Datums newton_cg(const Program& f, const Datums& in, const MinimiseOptions& options, const Location& loc) {
  const Objective<E> objective(f, core::ad::slice(in, 1, in.size()), loc);
  struct State {
    Place<E> now;
    Count iterations;
    Truth on;
  };
  const Place<E> first = objective.at(Vector<E>(in[0]));
  const State done = WHILE(
      State{first, Count(0), !at_rest(first, options)},
      [&](const State& s) { return both(s.on, s.iterations < options.iterations); },
      [&](const State& s) {
        const Vector<E> direction = truncated_newton_direction(objective, s.now);
        const auto [next, found] = line_search(objective, s.now, direction, Number<E>(1.0));
        return IF(
            found,
            [&, there = next] {
              return State{there, s.iterations + 1, !at_rest(there, options)};
            },
            [&] {
              return State{s.now, s.iterations + 1, Truth(false)};
            });
      });
  return {done.now.x.datum(), done.iterations.datum(), at_rest(done.now, options).datum()};
}

using Minimiser = Datums (*)(const Program& f, const Datums& in, const MinimiseOptions& options,
                             const Location& loc);

template <class F, Unknown X, class... A>
auto minimised(const char* name, Minimiser solver, F f, MinimiseOptions options, const X& x0, const A&... a) {
  using E = element_of<X>;
  options.tolerance = or_default<E>(options.tolerance, 1e-8, 1e-4);
  const Location loc = core::here(options.place);
  require_unknown(name, x0.datum(), loc);
  if (options.history < 1)
    core::raise_at(loc, std::string(name) + ": expected a history of one step or more, got " +
                            std::to_string(options.history));
  Program objective = program_of(std::move(f), x0, a...);
  objective.run = [run = objective.run, name, loc](Datums in) {
    if constexpr (is_number<X>) in[0] = Vector<E>(in[0])(0).datum();
    const Datums y = run(in);
    const ir::Type number = core::detail::TypeOf<E>::get();
    if (y.size() != 1 || y[0].type() != number)
      core::raise_at(loc, std::string(name) + ": expected f to give a number, " + number.str() + ", got " +
                              (y.size() == 1 ? y[0].type().str() : "several values"));
    return y;
  };
  const Program run{name, [objective, solver, options, loc](const Datums& in) {
                      return solver(objective, in, options, loc);
                    }};
  const Datums found = solved_by(name, run, gradient_of(objective, loc), {as_vector<E>(x0.datum()).datum()},
                                 core::detail::flatten(std::tie(a...)), Equations::symmetric, loc);
  const Number<E> value(objective.run(with_unknown(found[0], core::detail::flatten(std::tie(a...))))[0]);
  return Minimum<X, Rep<E>>{from_vector<X, E>(Vector<E>(found[0])), value, Count(found[1]), Truth(found[2])};
}

}  // namespace detail

/// The x near x0 that makes f(x, a...) smallest, by the quasi-Newton method L-BFGS: lbfgs(f, {.history = 20},
/// x0, a...), or without options. f gives a number; x is a number or a vector, of any size, a... are any
/// products of Reps. What f needs that is differentiated is passed in a: to capture it is an Error.
///
/// It stops, without having converged, where no step makes f smaller. Errors: an unknown that is a matrix or
/// empty; f that gives no number. Source: Liu & Nocedal, "On the limited memory BFGS method for large scale
/// optimization", Mathematical Programming 45, 1989.
template <class F, class X, class... A>
auto lbfgs(F f, const MinimiseOptions& options, const X& x0, const A&... a) {
  using Start = core::detail::lifted_t<X>;
  static_assert(detail::Unknown<Start>,
                "lbfgs: expected x0 to be a Rep<double> or Rep<float>, or an array or tensor of those");
  return detail::minimised("lbfgs", detail::lbfgs<detail::element_of<Start>>, std::move(f), options,
                           core::detail::convert<core::detail::lifted_t<X>>(x0),
                           core::detail::convert<core::detail::lifted_t<A>>(a)...);
}
/// The same by Newton's method, whose equations are solved by conjugate gradients as exactly as pays: fewer,
/// dearer steps. Source: Dembo & Steihaug, "Truncated-Newton algorithms for large-scale unconstrained
/// optimization", Mathematical Programming 26, 1983.
template <class F, class X, class... A>
auto newton_cg(F f, const MinimiseOptions& options, const X& x0, const A&... a) {
  using Start = core::detail::lifted_t<X>;
  static_assert(detail::Unknown<Start>,
                "newton_cg: expected x0 to be a Rep<double> or Rep<float>, or an array or tensor of those");
  return detail::minimised("newton_cg", detail::newton_cg<detail::element_of<Start>>, std::move(f), options,
                           core::detail::convert<core::detail::lifted_t<X>>(x0),
                           core::detail::convert<core::detail::lifted_t<A>>(a)...);
}
LANTERN_SOLVER_WITHOUT_OPTIONS(lbfgs, MinimiseOptions)
LANTERN_SOLVER_WITHOUT_OPTIONS(newton_cg, MinimiseOptions)

}  // namespace lantern::solvers
