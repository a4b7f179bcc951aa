// Roots of f(x, a...) = 0: newton for a number or a vector, bisect and brent for a number in a bracket.
//
// The derivative of a root is that of the equation, dx/da = -(df/dx)^-1 df/da, of every order (implicit.hpp);
// the start and the bracket have none. What f needs that is differentiated is passed as an argument: to
// capture it is an Error.
#pragma once

#include "lantern/compiler/solvers/implicit.hpp"

namespace lantern::solvers {

/// When a search ends.
struct RootOptions {
  /// newton: the step is at most tolerance (1 + |x|), in the Euclidean norm; bisect, brent: so is the
  /// bracket. 0: 1e-12, of floats 1e-6.
  double tolerance = 0;
  std::int64_t iterations = 100;  ///< at most; bisect and brent need one or more for each bit of the bracket
  std::source_location place = std::source_location::current();
};

/// What was found.
template <class X, class I = Rep<std::int64_t>, class B = Rep<bool>>
struct Root {
  X x;           ///< the last point, also where the search has not converged
  I iterations;  ///< taken
  B converged;   ///< within the tolerance
};

namespace detail {

/// (x, iterations, converged) from (x0, arguments...), by Newton's method with steps that are halved until
/// |f| is smaller (Nocedal & Wright, "Numerical Optimization", 2nd edition 2006, 11.2). `X`: Number or
/// Vector.
template <Unknown X>
Datums newton(const Program& f, const Datums& in, double tolerance, std::int64_t iterations,
              const Location& loc) {
  using E = element_of<X>;
  const Datums arguments = core::ad::slice(in, 1, in.size());
  const auto value = [&](const X& x) {
    const Datum y = f.run(with_unknown(x.datum(), arguments)).at(0);
    if (y.type().rank() != x.datum().type().rank())
      core::raise_at(loc, "newton: expected f to give a value of the unknown's type, " +
                              x.datum().type().str() + ", got " + y.type().str());
    core::detail::require_same_sizes(y, x.datum(), 0,
                                     "newton: expected f to give as many numbers as the unknown has", loc);
    return X(y);
  };
  using State = std::tuple<X, X, Count, Truth, Truth>;  // x, f(x), iterations, converged, whether to go on
  const X start(in[0]);
  const auto [x, fx, made, converged, more] = WHILE(
      State(start, value(start), Count(0), Truth(false), Truth(true)),
      [&](const X&, const X&, const Count& k, const Truth&, const Truth& on) {
        return both(on, k < iterations);
      },
      [&](const X& now, const X& residual, const Count& k, const Truth&, const Truth&) {
        const Datum slope = jacobian_of(f, with_unknown(now.datum(), arguments), loc);
        const X step(divided(residual.datum(), slope, loc));
        const Truth small = norm(step) <= tolerance * (1.0 + norm(now)), usable = finite(norm(step));
        const Number<E> before = norm(residual);
        const auto point = [&](const Number<E>& share) { return X(now - share * step); };
        // A last step is taken whole: |f| is rounding there.
        using Trial = std::tuple<Number<E>, X, X, Count>;  // share of the step, point, f there, iterations
        const Trial trial = WHILE(
            Trial(Number<E>(1.0), point(1.0), value(point(1.0)), Count(0)),
            [&](const Number<E>& share, const X&, const X& there, const Count& halvings) {
              const Truth worse = !(norm(there) <= (1.0 - 1e-4 * share) * before);
              return both(both(worse, both(usable, !small)), halvings < 30);
            },
            [&](const Number<E>& share, const X&, const X&, const Count& halvings) {
              const X next = point(0.5 * share);
              return Trial(0.5 * share, next, value(next), halvings + 1);
            });
        return IF(
            usable, [&] { return State(std::get<1>(trial), std::get<2>(trial), k + 1, small, !small); },
            [&] { return State(now, residual, k + 1, Truth(false), Truth(false)); });
      });
  return {x.datum(), made.datum(), converged.datum()};
}

/// f(x) for a number x.
template <FloatElement E>
Number<E> at_number(const char* solver, const Program& f, const Number<E>& x, const Datums& arguments,
                    const Location& loc) {
  const Datum y = f.run(with_unknown(x.datum(), arguments)).at(0);
  if (y.type() != x.datum().type())
    core::raise_at(loc, std::string(solver) + ": expected f to give a number, " + x.datum().type().str() +
                            ", got " + y.type().str());
  return Number<E>(y);
}

/// Raises unless f changes its sign.
template <FloatElement E>
void require_bracket(const char* solver, const Number<E>& at_lo, const Number<E>& at_hi,
                     const Location& loc) {
  const Truth opposite = select(at_lo < 0.0, at_hi >= 0.0, select(at_lo > 0.0, at_hi <= 0.0, at_lo == 0.0));
  core::detail::require(
      opposite.datum(),
      std::string(solver) +
          ": expected f to have opposite signs at lo and hi: choose another bracket, or use newton",
      loc);
}

/// (x, iterations, converged) from (lo, hi, arguments...).
template <FloatElement E>
Datums bisect(const Program& f, const Datums& in, const RootOptions& options, const Location& loc) {
  const Datums arguments = core::ad::slice(in, 2, in.size());
  const auto value = [&](const Number<E>& x) { return at_number("bisect", f, x, arguments, loc); };
  const Number<E> lo(in[0]), hi(in[1]), at_lo = value(lo), at_hi = value(hi);
  require_bracket("bisect", at_lo, at_hi, loc);
  const auto narrow = [&](const Number<E>& a, const Number<E>& b) {
    return abs(b - a) <= options.tolerance * (1.0 + abs(a));
  };
  const auto [a, b, k] = WHILE(
      // A root itself is both ends from then on.
      std::tuple(select(at_hi == 0.0, hi, lo), select(at_lo == 0.0, lo, hi), Count(0)),
      [&](const Number<E>& l, const Number<E>& h, const Count& iterations) {
        return both(!narrow(l, h), iterations < options.iterations);
      },
      [&](const Number<E>& l, const Number<E>& h, const Count& iterations) {
        const Number<E> middle = l + 0.5 * (h - l), there = value(middle);
        const Truth same = (there > 0.0) == (at_lo > 0.0), here = there == 0.0;
        return std::tuple(select(here, middle, select(same, middle, l)),
                          select(here, middle, select(same, h, middle)), iterations + 1);
      });
  const Number<E> x = a + 0.5 * (b - a);
  return {x.datum(), k.datum(), narrow(a, b).datum()};
}

/// The same by Brent, "Algorithms for Minimization without Derivatives", 1973, chapter 4 (zeroin).
template <FloatElement E>
Datums brent(const Program& f, const Datums& in, const RootOptions& options, const Location& loc) {
  const Datums arguments = core::ad::slice(in, 2, in.size());
  const auto value = [&](const Number<E>& x) { return at_number("brent", f, x, arguments, loc); };
  /// b is the best point, a the one before, c on the other side of the root; d and e the last two steps.
  struct State {
    Number<E> a, b, c, fa, fb, fc, d, e;
    Count iterations;
    Truth found;
  };
  const Number<E> lo(in[0]), hi(in[1]), at_lo = value(lo), at_hi = value(hi);
  require_bracket("brent", at_lo, at_hi, loc);
  const State start{lo, hi, lo, at_lo, at_hi, at_lo, hi - lo, hi - lo, Count(0), Truth(false)};
  const State done = WHILE(
      start, [&](const State& s) { return both(!s.found, s.iterations < options.iterations); },
      [&](const State& s) {
        // c and b on two sides, b the better one.
        const Truth aside = (s.fb > 0.0) == (s.fc > 0.0);
        const Number<E> c = select(aside, s.a, s.c), fc = select(aside, s.fa, s.fc);
        const Number<E> d = select(aside, s.b - s.a, s.d), e = select(aside, s.b - s.a, s.e);
        const Truth exchange = abs(fc) < abs(s.fb);
        const Number<E> a1 = select(exchange, s.b, s.a), b1 = select(exchange, c, s.b),
                        c1 = select(exchange, s.b, c);
        const Number<E> fa1 = select(exchange, s.fb, s.fa), fb1 = select(exchange, fc, s.fb),
                        fc1 = select(exchange, s.fb, fc);
        const Number<E> least = 0.5 * options.tolerance * (1.0 + abs(b1)), half = 0.5 * (c1 - b1);
        return IF(
            both(abs(half) > least, fb1 != 0.0),
            [&] {
              // Inverse quadratic interpolation, or the secant where two points are one.
              const Number<E> r = fb1 / fa1, q = fa1 / fc1, w = fb1 / fc1;
              const Truth secant = a1 == c1;
              const Number<E> up =
                  select(secant, 2.0 * half * r, r * (2.0 * half * q * (q - w) - (b1 - a1) * (w - 1.0)));
              const Number<E> down = select(secant, 1.0 - r, (q - 1.0) * (w - 1.0) * (r - 1.0));
              const Number<E> p = abs(up), divisor = select(up > 0.0, -down, down);
              const Truth good = both(
                  both(abs(e) >= least, abs(fa1) > abs(fb1)),
                  both(2.0 * p < 3.0 * half * divisor - abs(least * divisor), p < abs(0.5 * e * divisor)));
              const Number<E> step = select(good, p / divisor, half), before = select(good, d, half);
              const Number<E> next = b1 + select(abs(step) > least, step, select(half > 0.0, least, -least));
              return State{b1, next, c1, fb1, value(next), fc1, step, before, s.iterations + 1, Truth(false)};
            },
            [&] { return State{a1, b1, c1, fa1, fb1, fc1, d, e, s.iterations, Truth(true)}; });
      });
  return {done.b.datum(), done.iterations.datum(), done.found.datum()};
}

template <class X>
Root<X> root_of(const Datums& data) {
  return {X(data[0]), Count(data[1]), Truth(data[2])};
}

/// Of a bracket: a literal is of the other end's type, two of double.
template <class Lo, class Hi>
using bracket_element = std::conditional_t<std::same_as<core::detail::lifted_t<Lo>, Rep<float>> ||
                                               std::same_as<core::detail::lifted_t<Hi>, Rep<float>>,
                                           float, double>;

using BracketSolver = Datums (*)(const Program& f, const Datums& in, const RootOptions& options,
                                 const Location& loc);

template <FloatElement E, class F, class... A>
Root<Number<E>> bracketed(const char* name, BracketSolver solver, F f, RootOptions options,
                          const Number<E>& lo, const Number<E>& hi, const A&... a) {
  options.tolerance = or_default<E>(options.tolerance, 1e-12, 1e-6);
  const Location loc = core::here(options.place);
  const Program program = program_of(std::move(f), lo, a...);
  const Program run{
      std::string(name) + "_" + program.name,
      [program, solver, options, loc](const Datums& in) { return solver(program, in, options, loc); }};
  return root_of<Number<E>>(solved_by(name, run, program, {lo.datum(), hi.datum()},
                                      core::detail::flatten(std::tie(a...)), Equations::dense, loc));
}

}  // namespace detail

/// The x near x0 with f(x, a...) = 0: newton(f, {.tolerance = 1e-10}, x0, a...), or without options. x is a
/// number or a vector, f of it of the same type and size; a... are any products of Reps. The Jacobian is
/// found by differentiation, and dense: for up to some hundreds of unknowns.
///
/// At a kink of f its slopes are those of docs/conventions.md, in the steps and in the derivative of x, eagerly and compiled;
/// check_derivative tells of it.
///
/// It stops, without having converged, where the Jacobian is singular or f is not finite. Errors: an unknown
/// that is a matrix, or has no elements; f of another type.
template <class F, class X, class... A>
auto newton(F f, const RootOptions& options, const X& x0, const A&... a) {
  using Start = core::detail::lifted_t<X>;
  static_assert(detail::Unknown<Start>,
                "newton: expected x0 to be a Rep<double> or Rep<float>, or an array or tensor of those");
  using E = detail::element_of<Start>;
  using State = std::conditional_t<detail::is_number<Start>, detail::Number<E>, detail::Vector<E>>;
  const double tolerance = detail::or_default<E>(options.tolerance, 1e-12, 1e-6);
  const Start start = core::detail::convert<Start>(x0);
  const core::Location loc = core::here(options.place);
  detail::require_unknown("newton", start.datum(), loc);
  const auto lifted =
      std::tuple<core::detail::lifted_t<A>...>(core::detail::convert<core::detail::lifted_t<A>>(a)...);
  const detail::Program program =
      std::apply([&](const auto&... b) { return detail::program_of(std::move(f), start, b...); }, lifted);
  const detail::Program run{"newton_" + program.name,
                            [program, tolerance, options, loc](const core::Datums& in) {
                              return detail::newton<State>(program, in, tolerance, options.iterations, loc);
                            }};
  return detail::root_of<Start>(detail::solved_by(
      "newton", run, program, {start.datum()}, core::detail::flatten(lifted), detail::Equations::dense, loc));
}

/// The root of f(x, a...) between lo and hi, where f has opposite signs, by halving the bracket: newton's
/// options and derivative. Errors: f that gives no number; no change of sign (as the program runs, where the
/// numbers are not known before).
template <class F, class Lo, class Hi, class... A>
auto bisect(F f, const RootOptions& options, const Lo& lo, const Hi& hi, const A&... a) {
  using E = detail::bracket_element<Lo, Hi>;
  return detail::bracketed<E>("bisect", detail::bisect<E>, std::move(f), options, lo, hi,
                              core::detail::convert<core::detail::lifted_t<A>>(a)...);
}
/// The same by interpolation where that is safe: some ten evaluations of f where bisect takes fifty.
template <class F, class Lo, class Hi, class... A>
auto brent(F f, const RootOptions& options, const Lo& lo, const Hi& hi, const A&... a) {
  using E = detail::bracket_element<Lo, Hi>;
  return detail::bracketed<E>("brent", detail::brent<E>, std::move(f), options, lo, hi,
                              core::detail::convert<core::detail::lifted_t<A>>(a)...);
}
LANTERN_SOLVER_WITHOUT_OPTIONS(newton, RootOptions)
LANTERN_SOLVER_WITHOUT_OPTIONS(bisect, RootOptions)
LANTERN_SOLVER_WITHOUT_OPTIONS(brent, RootOptions)

}  // namespace lantern::solvers
