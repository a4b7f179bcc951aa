// Least squares: the x that makes |r(x, a...)|^2 / 2 smallest, by gauss_newton or levenberg_marquardt.
//
// The derivative of the solution is that of its equations J^T r = 0, with J = dr/dx, by the implicit function
// theorem, of every order (implicit.hpp): their Jacobian is the whole Hessian of the cost, second derivatives
// of r included, so it is exact where residuals are left over too. It is as accurate as the equations hold.
#pragma once

#include "lantern/compiler/solvers/implicit.hpp"

namespace lantern::solvers {

/// When a search ends.
struct FitOptions {
  /// The step is at most tolerance (1 + |x|), in the Euclidean norm; 0: 1e-11, of floats 1e-5.
  double tolerance = 0;
  std::int64_t iterations = 200;  ///< at most
  double damping =
      1e-3;  ///< levenberg_marquardt: at first, relative to the largest diagonal element of J^T J
  std::source_location place = std::source_location::current();
};

/// What was found. The uncertainty is that of the linear model at x, for residuals with independent errors of one
/// variance (Seber & Wild, "Nonlinear Regression", 1989, 2.1.2; scipy.optimize.curve_fit without absolute_sigma):
/// meaningful where the residuals are nearly linear over a standard error. It is differentiated as x is.
template <class X, class T = Rep<double>, class I = Rep<std::int64_t>, class B = Rep<bool>, class C = Rep<core::Tensor<double>>>
struct Fit {
  X x;                   ///< the last point, also where the search has not converged
  T cost;                ///< |r|^2 / 2 there
  I iterations;          ///< taken, steps that were not accepted included
  B converged;           ///< within the tolerance
  I degrees_of_freedom;  ///< residuals less unknowns
  T residual_variance;   ///< |r|^2 / degrees_of_freedom; NaN where there are none, and with it what follows
  C covariance;          ///< of x, [n, n]: residual_variance (J^T J)^-1; not finite where J has not full rank
  X standard_errors;     ///< of x: the square roots of the covariance's diagonal
};

namespace detail {

/// The quadratic model of the cost at a point: J^T J, J^T r and |r|^2 / 2.
template <FloatElement E>
struct NormalEquations {
  Matrix<E> square;
  Vector<E> gradient;
  Number<E> cost;
};

template <FloatElement E>
NormalEquations<E> normal_equations(const Program& residuals, const Vector<E>& x, const Datums& arguments,
                                    const Location& loc) {
  const Datums at = with_unknown(x.datum(), arguments);
  const Vector<E> r(residuals.run(at)[0]);
  const Matrix<E> j(jacobian_of(residuals, at, loc)), t = transpose(j);
  return {matmul(t, j), matmul(t, r), 0.5 * dot(r, r)};
}

template <FloatElement E>
struct FitState {
  Vector<E> x;
  NormalEquations<E> model;
  Number<E> damping, factor;
  Count iterations;
  Truth converged, on;
};

template <FloatElement E>
Datums searched(const FitState<E>& s) {
  return {s.x.datum(), s.iterations.datum(), s.converged.datum()};
}

/// (x, iterations, converged) from (x0, arguments...): Newton's method without second derivatives of r, each
/// step halved until the cost is smaller (Nocedal & Wright, "Numerical Optimization", 2nd edition
/// 2006, 10.3).
template <FloatElement E>
Datums gauss_newton(const Program& residuals, const Datums& in, const FitOptions& options,
                    const Location& loc) {
  const Datums arguments = core::ad::slice(in, 1, in.size());
  const auto model = [&](const Vector<E>& x) { return normal_equations<E>(residuals, x, arguments, loc); };
  const auto cost = [&](const Vector<E>& x) {
    const Vector<E> r(residuals.run(with_unknown(x.datum(), arguments))[0]);
    return Number<E>(0.5 * dot(r, r));
  };
  const Vector<E> x0(in[0]);
  return searched<E>(WHILE(
      FitState<E>{x0, model(x0), Number<E>(0.0), Number<E>(0.0), Count(0), Truth(false), Truth(true)},
      [&](const FitState<E>& s) { return both(s.on, s.iterations < options.iterations); },
      [&](const FitState<E>& s) {
        const Vector<E> step(solve(s.model.square.datum(), s.model.gradient.datum(), loc));
        const Truth usable = finite(norm(step)), small = norm(step) <= options.tolerance * (1.0 + norm(s.x));
        const Number<E> slope = dot(s.model.gradient, step);
        const auto [share, trials] = WHILE(
            std::tuple(Number<E>(1.0), Count(0)),
            [&](const Number<E>& t, const Count& k) {
              const auto worse = [&] {
                const Number<E> bound = s.model.cost * (1.0 + rounding<E>)-1e-4 * t * slope;
                return !(cost(s.x - t * step) <= bound);
              };
              return AND(both(both(usable, !small), k < 40), worse);
            },
            [](const Number<E>& t, const Count& k) { return std::tuple(0.5 * t, k + 1); });
        const Vector<E> next = s.x - share * step;
        return IF(
            both(usable, trials < 40),
            [&] { return FitState<E>{next, model(next), s.damping, s.factor, s.iterations + 1, small, !small}; },
            [&] {
              return FitState<E>{s.x, s.model, s.damping, s.factor, s.iterations + 1, Truth(false), Truth(false)};
            });
      }));
}

/// The same with damped steps: Madsen, Nielsen & Tingleff, "Methods for non-linear least squares problems",
/// 2nd edition 2004, algorithm 3.16.
template <FloatElement E>
Datums levenberg_marquardt(const Program& residuals, const Datums& in, const FitOptions& options,
                           const Location& loc) {
  const Datums arguments = core::ad::slice(in, 1, in.size());
  const auto model = [&](const Vector<E>& x) { return normal_equations<E>(residuals, x, arguments, loc); };
  const Vector<E> x0(in[0]);
  const Count n = x0.dim(0);
  const NormalEquations<E> first = model(x0);
  const Number<E> largest = FOR(
      0, n, Number<E>(0.0), [&](const Count& i, const Number<E>& m) { return max(m, first.square(i, i)); });
  return searched<E>(WHILE(
      FitState<E>{x0, first, options.damping * largest, Number<E>(2.0), Count(0), Truth(false), Truth(true)},
      [&](const FitState<E>& s) { return both(s.on, s.iterations < options.iterations); },
      [&](const FitState<E>& s) {
        const Matrix<E> damped = FOR(0, n, s.model.square, [&](const Count& i, const Matrix<E>& m) {
          return m.set(i, i, m(i, i) + s.damping);
        });
        const Vector<E> step = -Vector<E>(solve(damped.datum(), s.model.gradient.datum(), loc));
        const Truth usable = finite(norm(step)), small = norm(step) <= options.tolerance * (1.0 + norm(s.x));
        const NormalEquations<E> there = model(s.x + step);
        const Number<E> gain = s.model.cost - there.cost;
        // Where costs differ by rounding alone, the gradient says which point is better.
        const Number<E> ratio =
            select(abs(gain) <= 10 * rounding<E> * s.model.cost,
                   select(norm(there.gradient) < norm(s.model.gradient), Number<E>(1.0), Number<E>(-1.0)),
                   gain / (0.5 * dot(step, s.damping * step - s.model.gradient)));
        const Number<E> bend = 2.0 * ratio - 1.0;
        return IF(
            both(usable, ratio > 0.0),
            [&] {
              const Number<E> damping = s.damping * max(1.0 / 3, 1.0 - bend * bend * bend);
              return FitState<E>{s.x + step, there, damping, Number<E>(2.0), s.iterations + 1, small, !small};
            },
            [&] {
              const Truth end = both(usable, small);
              return FitState<E>{s.x,
                                 s.model,
                                 select(s.damping > 0.0, s.damping * s.factor, Number<E>(1e-12)),
                                 2.0 * s.factor,
                                 s.iterations + 1,
                                 end,
                                 both(!end, finite(s.damping))};
            });
      }));
}

/// The inverse of a symmetric matrix, column by column. Not finite where it is singular.
template <FloatElement E>
Matrix<E> inverse_of(const Matrix<E>& a) {
  const LU<E> factors = lu(a);
  const Count n = a.dim(0);
  return FOR(0, n, zeros_like(a), [&](const Count& i, const Matrix<E>& m) {
    const Vector<E> unit(fill(Number<E>(0.0), n).set(i, Number<E>(1.0)).datum());
    const Vector<E> column = solvers::solve(factors, unit);
    return FOR(0, n, m, [&](const Count& k, const Matrix<E>& all) { return all.set(i, k, column(k)); });
  });
}

using FitSolver = Datums (*)(const Program& residuals, const Datums& in, const FitOptions& options,
                             const Location& loc);

template <class F, Unknown X, class... A>
auto fitted(const char* name, FitSolver solver, F f, FitOptions options, const X& x0, const A&... a) {
  using E = element_of<X>;
  options.tolerance = or_default<E>(options.tolerance, 1e-11, 1e-5);
  const Location loc = core::here(options.place);
  require_unknown(name, x0.datum(), loc);
  Program residuals = program_of(std::move(f), x0, a...);
  if constexpr (is_number<X>)
    residuals.run = [scalar = residuals.run](Datums in) {
      in[0] = Vector<E>(in[0])(0).datum();
      return scalar(in);
    };
  residuals.run = [run = residuals.run, name, loc](const Datums& in) {
    const Datums r = run(in);
    if (r.size() != 1 || r[0].type().rank() != 1 || r[0].type().element() != in[0].type().element())
      core::raise_at(loc, std::string(name) + ": expected f to give a vector of residuals, got " +
                              (r.size() == 1 ? r[0].type().str() : "several values") +
                              ", the unknown being " + in[0].type().str());
    return r;
  };
  const Program stationary{"stationary_" + residuals.name, [residuals, loc](const Datums& at) {
                             return core::ad::vjp(residuals, at, first_of(at), residuals.run(at), false, loc);
                           }};
  const Program run{name, [residuals, solver, options, loc](const Datums& in) {
                      return solver(residuals, in, options, loc);
                    }};
  const Datums found = solved_by(name, run, stationary, {as_vector<E>(x0.datum()).datum()},
                                 core::detail::flatten(std::tie(a...)), Equations::dense, loc);
  const Datums at = with_unknown(found[0], core::detail::flatten(std::tie(a...)));
  const Vector<E> r(residuals.run(at)[0]);
  const Number<E> cost = 0.5 * dot(r, r);
  const Matrix<E> j(jacobian_of(residuals, at, loc));
  const Count freedom = r.dim(0) - j.dim(1);
  const Number<E> variance = select(freedom > 0, 2.0 * cost / cast<E>(max(freedom, 1)),
                                    Number<E>(std::numeric_limits<E>::quiet_NaN()));
  const Matrix<E> covariance = variance * inverse_of<E>(matmul(transpose(j), j));
  const Vector<E> errors = FOR(0, j.dim(1), zeros_like(Vector<E>(found[0])), [&](const Count& i, const Vector<E>& v) {
    return v.set(i, sqrt(covariance(i, i)));
  });
  return Fit<X, Rep<E>, Count, Truth, Matrix<E>>{from_vector<X, E>(Vector<E>(found[0])), cost, Count(found[1]), Truth(found[2]),
                                                 freedom, variance, covariance, from_vector<X, E>(errors)};
}

}  // namespace detail

/// The x near x0 that makes the sum of squares of f(x, a...) smallest, by steps of J^T J d = -J^T r that are
/// halved until they help: gauss_newton(f, {.tolerance = 1e-10}, x0, a...), or without options. f gives a
/// vector, of at least as many elements as x; x is a number or a vector, a... are any products of Reps. What
/// f needs that is differentiated is passed in a: to capture it is an Error. J is dense, found by
/// differentiation.
///
/// It stops, without having converged, where J has not full rank. Errors: an unknown that is a matrix or
/// empty; f that gives no vector.
template <class F, class X, class... A>
auto gauss_newton(F f, const FitOptions& options, const X& x0, const A&... a) {
  using Start = core::detail::lifted_t<X>;
  static_assert(
      detail::Unknown<Start>,
      "gauss_newton: expected x0 to be a Rep<double> or Rep<float>, or an array or tensor of those");
  return detail::fitted("gauss_newton", detail::gauss_newton<detail::element_of<Start>>, std::move(f),
                        options, core::detail::convert<core::detail::lifted_t<X>>(x0),
                        core::detail::convert<core::detail::lifted_t<A>>(a)...);
}
/// The same with steps of (J^T J + m I) d = -J^T r, m by what the steps before have gained: from far away,
/// and where J has not full rank on the way.
template <class F, class X, class... A>
auto levenberg_marquardt(F f, const FitOptions& options, const X& x0, const A&... a) {
  using Start = core::detail::lifted_t<X>;
  static_assert(
      detail::Unknown<Start>,
      "levenberg_marquardt: expected x0 to be a Rep<double> or Rep<float>, or an array or tensor of those");
  return detail::fitted("levenberg_marquardt", detail::levenberg_marquardt<detail::element_of<Start>>,
                        std::move(f), options, core::detail::convert<core::detail::lifted_t<X>>(x0),
                        core::detail::convert<core::detail::lifted_t<A>>(a)...);
}
LANTERN_SOLVER_WITHOUT_OPTIONS(gauss_newton, FitOptions)
LANTERN_SOLVER_WITHOUT_OPTIONS(levenberg_marquardt, FitOptions)

}  // namespace lantern::solvers
