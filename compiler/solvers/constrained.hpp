// Problems with constraints: the x that makes f(x, a...) smallest where c(x, a...) = 0, g(x, a...) >= 0 and
// lo <= x <= hi.
//
//   auto disc = solvers::problem([](A x, D) { return x[0] + x[1]; })
//                   .at_least_zero([](A x, D r) { return r * r - dot(x, x); })
//                   .between(-1.0, inf);
//   solvers::interior_point(disc, x0, r).x
//
// The Lagrangian is L = f - y c - w g, over v = (x, y, w): its gradient by v has all that the optimality
// conditions (Karush-Kuhn-Tucker) need, and its Hessian by v is the matrix of Newton's method. The derivative
// of a solution is that of the conditions, by the implicit function theorem (implicit.hpp). Source: Nocedal &
// Wright, "Numerical Optimization", 2nd edition 2006, chapters 12, 17 and 19.
#pragma once

#include <limits>

#include "lantern/compiler/solvers/implicit.hpp"

namespace lantern::solvers {

/// What was found. The slope of the value by a right-hand side, of c(x) = b or g(x) >= b, is b's multiplier.
template <class X, class T = Rep<double>, class V = Rep<core::Array<double>>, class I = Rep<std::int64_t>,
          class B = Rep<bool>>
struct Optimum {
  X x;             ///< the last point, also where the search has not converged
  T value;         ///< f there
  V equal;         ///< multipliers of c, as many as c has numbers
  V at_least;      ///< multipliers of g, 0 or more; 0 where g > 0
  V lower, upper;  ///< multipliers of x >= lo and x <= hi, 0 or more; empty without `between`
  T violation;     ///< the most that c differs from 0, or g or the distance to a limit lies below it
  I iterations;    ///< taken
  B converged;  ///< within the tolerance; where it is false and `violation` is large, no feasible point was
                ///< found near x0
};

namespace detail {

/// No constraints of this kind, or no limits.
struct Absent {};

template <class F, class Equal, class AtLeast, class Lo, class Hi, class Pattern>
struct Problem {
  F f;
  Equal equal;
  AtLeast at_least;
  Lo lo;
  Hi hi;
  Pattern pattern;

  static constexpr bool has_equal = !std::same_as<Equal, Absent>,
                        has_at_least = !std::same_as<AtLeast, Absent>, has_limits = !std::same_as<Lo, Absent>,
                        is_sparse = !std::same_as<Pattern, Absent>;

  /// c(x, a...) = 0, a number or a vector.
  template <class C>
  auto equal_zero(C c) const {
    static_assert(!has_equal, "equal_zero: expected one function of all equations, which may give a vector");
    return Problem<F, C, AtLeast, Lo, Hi, Pattern>{f, std::move(c), at_least, lo, hi, pattern};
  }
  /// g(x, a...) >= 0, a number or a vector.
  template <class G>
  auto at_least_zero(G g) const {
    static_assert(!has_at_least,
                  "at_least_zero: expected one function of all inequalities, which may give a vector");
    return Problem<F, Equal, G, Lo, Hi, Pattern>{f, equal, std::move(g), lo, hi, pattern};
  }
  /// lower <= x <= upper: numbers, or vectors of x's size; infinite ones are none. f, c and g are asked
  /// within only. A limit that is a value of the program is differentiated.
  template <class L, class U>
  auto between(L lower, U upper) const {
    static_assert(!has_limits, "between: expected limits once");
    return Problem<F, Equal, AtLeast, L, U, Pattern>{
        f, equal, at_least, std::move(lower), std::move(upper), pattern};
  }
  /// The sparsity of the optimality conditions, from kkt_sparsity: interior_point then computes few products
  /// of the Hessian, and factors a band.
  template <class P>
  auto sparse(P s) const {
    static_assert(!is_sparse, "sparse: expected one sparsity");
    return Problem<F, Equal, AtLeast, Lo, Hi, P>{f, equal, at_least, lo, hi, std::move(s)};
  }
};
template <class T>
struct IsProblem : std::false_type {};
template <class... T>
struct IsProblem<Problem<T...>> : std::true_type {};

/// The parts of an optimality condition: v = (x, y, w), and multipliers of the limits.
template <FloatElement E>
struct Kkt {
  Vector<E> x, y, w, lower, upper;
};

/// f, c and g over flattened data: (x, arguments...), of which the first are n, how many equations and
/// inequalities there are, and the limits.
template <FloatElement E>
class Conditions {
 public:
  static constexpr std::size_t own = 5;  ///< n, m, p, lo, hi

  /// `pattern`: how many values of a sparsity follow those.
  Conditions(Program f, Program c, Program g, bool limits, std::size_t pattern, Location loc)
      : f_(std::move(f)),
        c_(std::move(c)),
        g_(std::move(g)),
        limits_(limits),
        skipped_(own + pattern),
        loc_(std::move(loc)) {}

  bool has_limits() const { return limits_; }
  const Location& loc() const { return loc_; }
  const std::string& name() const { return f_.name; }

  Number<E> value(const Vector<E>& x, const Datums& in) const { return Number<E>(f_.run(at(x, in))[0]); }
  Vector<E> equations(const Vector<E>& x, const Datums& in) const { return Vector<E>(c_.run(at(x, in))[0]); }
  Vector<E> inequalities(const Vector<E>& x, const Datums& in) const {
    return Vector<E>(g_.run(at(x, in))[0]);
  }

  /// L(v, arguments...).
  Program lagrangian() const {
    return {"lagrangian_" + f_.name, [self = *this](const Datums& in) {
              const Datums rest = core::ad::slice(in, 1, in.size());
              const Kkt<E> z = self.parts(Vector<E>(in[0]), rest, false);
              const Number<E> l = self.value(z.x, rest) - dot(z.y, self.equations(z.x, rest)) -
                                  dot(z.w, self.inequalities(z.x, rest));
              return Datums{l.datum()};
            }};
  }
  /// (grad_x L, -c, -g) at v.
  Vector<E> gradient(const Vector<E>& v, const Datums& in) const {
    return Vector<E>(gradient_of(lagrangian(), loc_).run(with_unknown(v.datum(), in))[0]);
  }
  /// The Hessian of L by v.
  Matrix<E> hessian(const Vector<E>& v, const Datums& in) const {
    return Matrix<E>(jacobian_of(gradient_of(lagrangian(), loc_), with_unknown(v.datum(), in), loc_));
  }

  /// Of z = (x, y, w, lower, upper), or of v alone.
  Kkt<E> parts(const Vector<E>& z, const Datums& in, bool limits) const {
    const Count n(in[0]), m(in[1]), p(in[2]), k = n + m + p;
    const Vector<E> none = z.slice(0, 0);
    if (!limits) return {z.slice(0, n), z.slice(n, n + m), z.slice(n + m, k), none, none};
    return {z.slice(0, n), z.slice(n, n + m), z.slice(n + m, k), z.slice(k, k + n),
            z.slice(k + n, k + 2 * n)};
  }
  static Vector<E> joined(const Vector<E>& a, const Vector<E>& b) { return Vector<E>(concat(a, b).datum()); }
  static Vector<E> v_of(const Kkt<E>& z) { return joined(joined(z.x, z.y), z.w); }
  Datum z_of(const Kkt<E>& z) const {
    const Vector<E> v = v_of(z);
    return (limits_ ? joined(joined(v, z.lower), z.upper) : v).datum();
  }

  /// 1 where there is a limit, 0 where it is infinite.
  static Vector<E> is_limit(const Vector<E>& limit) {
    const auto there = abs(limit) < std::numeric_limits<E>::max();
    return chosen(there, zeros_like(limit) + E(1), zeros_like(limit));
  }
  /// The distance from the lower limits, and to the upper ones; 1 where these are infinite.
  Vector<E> above(const Vector<E>& x, const Datums& in) const {
    const Vector<E> lo(in[3]);
    return chosen(abs(lo) < std::numeric_limits<E>::max(), x - lo, zeros_like(x) + E(1));
  }
  Vector<E> below(const Vector<E>& x, const Datums& in) const {
    const Vector<E> hi(in[4]);
    return chosen(abs(hi) < std::numeric_limits<E>::max(), hi - x, zeros_like(x) + E(1));
  }

  /// The optimality conditions of all of z: grad_x L - lower + upper, -c, and the products of multipliers
  /// with what they belong to. Of these the derivative is taken: what the products are at the solution does
  /// not matter.
  Program residual() const {
    return {
        "optimality_" + f_.name, [self = *this](const Datums& in) {
          const Datums rest = core::ad::slice(in, 1, in.size());
          const Kkt<E> z = self.parts(Vector<E>(in[0]), rest, self.limits_);
          const Vector<E> slope = self.gradient(v_of(z), rest);
          const Count n(rest[0]), m(rest[1]), p(rest[2]);
          const Vector<E> by_x = slope.slice(0, n), lack = slope.slice(n, n + m),
                          products = -z.w * slope.slice(n + m, n + m + p);
          if (!self.limits_) return Datums{joined(joined(by_x, lack), products).datum()};
          const Vector<E> stationary = by_x - z.lower + z.upper;
          const Vector<E> v = joined(joined(stationary, lack), products);
          return Datums{
              joined(joined(v, z.lower * self.above(z.x, rest)), z.upper * self.below(z.x, rest)).datum()};
        }};
  }

  /// The most that a condition on x lacks.
  Number<E> violation(const Vector<E>& x, const Datums& in) const {
    const Number<E> most = max(largest(abs(equations(x, in))), largest(-inequalities(x, in)));
    return limits_ ? max(most, max(largest(-above(x, in)), largest(-below(x, in)))) : most;
  }
  /// The largest element, 0 where all are less or there is none.
  static Number<E> largest(const Vector<E>& v) {
    return FOR(0, v.dim(0), Number<E>(0.0), [&](const Count& i, const Number<E>& m) {
      const Number<E> e = v(i);
      return select(e <= m, m, e);  // a NaN is the largest
    });
  }
  /// The smallest element, `most` where all are more or there is none.
  static Number<E> smallest(const Vector<E>& v, const Number<E>& most) {
    return FOR(0, v.dim(0), most, [&](const Count& i, const Number<E>& m) { return min(m, v(i)); });
  }
  static Vector<E> chosen(const Rep<core::Tensor<bool>>& c, const Vector<E>& a, const Vector<E>& b) {
    return Vector<E>(core::perform({Opcode::select_, 0, {}}, {c.datum(), a.datum(), b.datum()}));
  }

 private:
  Datums at(const Vector<E>& x, const Datums& in) const {
    return with_unknown(x.datum(), core::ad::slice(in, skipped_, in.size()));
  }

  Program f_, c_, g_;
  bool limits_;
  std::size_t skipped_;
  Location loc_;
};

/// A function that gives a number or a vector, of vectors alone.
template <FloatElement E, class F, class X, class... A>
Program vector_program(const std::string& solver, const char* what, const F& f, bool number,
                       const Location& loc, const X& x, const A&... a) {
  Program p = program_of(f, x, a...);
  return {p.name, [p, solver, what, number, loc, kind = x.datum().type().element()](Datums in) {
            if constexpr (is_number<X>) in[0] = Vector<E>(in[0])(0).datum();
            const Datums y = p.run(in);
            if (y.size() != 1 || y[0].type().element() != kind || y[0].type().rank() > (number ? 0 : 1))
              core::raise_at(loc, solver + ": expected " + what + " to give " +
                                      (number ? "a number" : "a number or a vector") +
                                      " of the unknown's element type, got " +
                                      (y.size() == 1 ? y[0].type().str() : "several values"));
            return number ? y : Datums{as_vector<E>(y[0]).datum()};
          }};
}

/// A limit as a vector of the unknown's size.
template <FloatElement E, class L>
Vector<E> limit_of(const L& limit, const Vector<E>& x, const std::string& solver, const Location& loc) {
  if constexpr (std::is_arithmetic_v<L>) {
    return zeros_like(x) + static_cast<E>(limit);
  } else {
    const auto lifted = core::detail::convert<core::detail::lifted_t<L>>(limit);
    const Datum d = lifted.datum();
    if (d.type().element() != x.datum().type().element() || d.type().rank() > 1)
      core::raise_at(
          loc, solver + ": expected a limit to be a number or a vector of the unknown's element type, got " +
                   d.type().str());
    if (!d.type().is_tensor()) return zeros_like(x) + Number<E>(d);
    core::detail::require_same_sizes(d, x.datum(), 0,
                                     solver + ": expected as many limits as the unknown has numbers", loc);
    return Vector<E>(d);
  }
}

/// The conditions of a problem. `pattern`: how many values of a sparsity it has.
template <FloatElement E, class P, class X, class... A>
Conditions<E> problem_conditions(const std::string& solver, const P& problem, std::size_t pattern,
                                 const Location& loc, const X& x0, const A&... a) {
  const auto program = [&](const char* what, const auto& f, bool number) {
    return vector_program<E>(solver, what, f, number, loc, x0, a...);
  };
  const Program none{"none", [](const Datums& in) { return Datums{Vector<E>(in[0]).slice(0, 0).datum()}; }};
  Program c = none, g = none;
  if constexpr (P::has_equal) c = program("equal_zero", problem.equal, false);
  if constexpr (P::has_at_least) g = program("at_least_zero", problem.at_least, false);
  return {program("the objective", problem.f, true), c, g, P::has_limits, pattern, loc};
}

/// A point and its multipliers, how many iterations were made, and whether it is a solution, from (x0,
/// arguments...).
template <FloatElement E>
using ConstrainedSolver = std::function<Datums(const Conditions<E>&, const Datums& in)>;

/// The w with J w = b or J^T w = b of the conditions' Jacobian J by all of z, at (z, arguments...); null: J is dense.
template <FloatElement E>
using ConditionsSolver = Vector<E> (*)(const Conditions<E>&, const Vector<E>& b, const Datums& at, bool transposed);

template <FloatElement E, class P, class X, class... A>
auto constrained(const std::string& name, const ConstrainedSolver<E>& solver, ConditionsSolver<E> inverse, const P& problem,
                 const Datums& pattern, const Location& loc, const X& x0, const A&... a) {
  require_unknown(name, x0.datum(), loc);
  const Conditions<E> conditions = problem_conditions<E>(name, problem, pattern.size(), loc, x0, a...);
  const Vector<E> start = as_vector<E>(x0.datum());
  Datums arguments(Conditions<E>::own);
  const Datums rest = core::detail::flatten(std::tie(a...));
  const Datums padded = core::ad::joined(Datums(Conditions<E>::own + pattern.size()), rest);
  arguments[0] = start.dim(0).datum();
  arguments[1] = conditions.equations(start, padded).dim(0).datum();
  arguments[2] = conditions.inequalities(start, padded).dim(0).datum();
  if constexpr (P::has_limits) {
    const Vector<E> lo = limit_of<E>(problem.lo, start, name, loc),
                    hi = limit_of<E>(problem.hi, start, name, loc);
    const Truth ordered = FOR(0, start.dim(0), Truth(true), [&](const Count& i, const Truth& all) {
      return both(all, stop_gradient(lo(i)) < stop_gradient(hi(i)));
    });
    core::detail::require(
        ordered.datum(),
        name + ": expected each lower limit to lie below its upper one; where x is known, use equal_zero",
        loc);
    arguments[3] = lo.datum(), arguments[4] = hi.datum();
  } else {
    const E infinity = std::numeric_limits<E>::infinity();
    arguments[3] = (zeros_like(start) - infinity).datum(),
    arguments[4] = (zeros_like(start) + infinity).datum();
  }
  arguments.insert(arguments.end(), pattern.begin(), pattern.end());
  arguments.insert(arguments.end(), rest.begin(), rest.end());

  const Program run{name + "_" + conditions.name(),
                    [conditions, solver](const Datums& in) { return solver(conditions, in); }};
  const Program residual = conditions.residual();
  const JacobianSolver equations =
      inverse == nullptr ? dense_equations(residual, loc)
                         : solved_with<E>(
                               residual,
                               [conditions, inverse](const Vector<E>& b, const Datums& at, bool transposed) {
                                 return inverse(conditions, b, at, transposed);
                               },
                               false, name, loc);
  const Datums found = solved_by(name, run, residual, {start.datum()}, arguments, equations, loc);
  const Kkt<E> z = conditions.parts(Vector<E>(found[0]), arguments, conditions.has_limits());
  return Optimum<X, Number<E>, Rep<core::Array<E>>>{from_vector<X, E>(z.x),
                                                    conditions.value(z.x, arguments),
                                                    as_array(z.y),
                                                    as_array(z.w),
                                                    as_array(z.lower),
                                                    as_array(z.upper),
                                                    conditions.violation(z.x, arguments),
                                                    Count(found[1]),
                                                    Truth(found[2])};
}

}  // namespace detail

/// A problem without constraints, to which they are added:
/// problem(f).equal_zero(c).at_least_zero(g).between(lo, hi). f, c and g take the unknown, a number or a
/// vector, and what follows the start in a solver's call.
template <class F>
auto problem(F f) {
  using detail::Absent;
  return detail::Problem<F, Absent, Absent, Absent, Absent, Absent>{std::move(f), {}, {}, {}, {}, {}};
}

}  // namespace lantern::solvers
