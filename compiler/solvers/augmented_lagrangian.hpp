// augmented_lagrangian: minima under constraints (constrained.hpp) by minima without them.
//
// lbfgs makes f - y c + r/2 |c|^2 + (|max(0, w - r h)|^2 - |w|^2) / (2 r) smallest, h >= 0 being the
// inequalities and the limits; then y and w take over what is left, and r grows where that fell too little.
// Only gradients are formed, so it suits many unknowns. Source: Nocedal & Wright, "Numerical Optimization",
// 2nd edition 2006, 17.3 and 17.4.
#pragma once

#include "lantern/compiler/solvers/constrained.hpp"
#include "lantern/compiler/solvers/minimise.hpp"

namespace lantern::solvers {

/// When a search ends, and how it begins.
struct AugmentedLagrangianOptions {
  /// Of the gradient of the Lagrangian, of what constraints lack and of the products of multipliers with
  /// inequalities, in the largest norm; 0: 1e-6, of floats 1e-3.
  double tolerance = 0;
  std::int64_t iterations = 50;         ///< at most: minima without constraints
  std::int64_t inner_iterations = 500;  ///< of lbfgs, in each
  double penalty = 10;                  ///< r at first
  std::source_location place = std::source_location::current();
};

namespace detail {

template <FloatElement E>
class AugmentedLagrangian {
 public:
  AugmentedLagrangian(const Conditions<E>& conditions, const AugmentedLagrangianOptions& options,
                      Datums arguments)
      : f_(conditions), options_(options), in_(std::move(arguments)) {}

  /// (z, iterations, converged).
  Datums search(const Vector<E>& x0) const {
    const Vector<E> y0 = zeros_like(f_.equations(x0, in_)), w0 = zeros_like(f_.inequalities(x0, in_)),
                    none = zeros_like(x0);
    const Kkt<E> first{x0, y0, w0, none, none};
    const State done = WHILE(
        State{first, Number<E>(options_.penalty), Number<E>(std::numeric_limits<E>::infinity()), Count(0),
              Truth(false), Truth(true)},
        [&](const State& s) { return both(s.on, s.steps < options_.iterations); },
        [&](const State& s) { return advance(s); });
    return {f_.z_of(done.z), done.steps.datum(), done.converged.datum()};
  }

 private:
  struct State {
    Kkt<E> z;
    Number<E> penalty, lack;
    Count steps;
    Truth converged, on;
  };

  /// max(0, w - r h): the new multipliers.
  static Vector<E> multipliers(const Vector<E>& w, const Vector<E>& h, const Number<E>& r) {
    return max(w - r * h, E(0));
  }
  /// Of the limits: of infinite ones the distance is 1, and no multiplier comes.
  Kkt<E> renewed(const Kkt<E>& z, const Vector<E>& x, const Number<E>& r) const {
    const Vector<E> lower = Conditions<E>::is_limit(Vector<E>(in_[3])) *
                            multipliers(z.lower, f_.above(x, in_), r),
                    upper = Conditions<E>::is_limit(Vector<E>(in_[4])) *
                            multipliers(z.upper, f_.below(x, in_), r);
    return {x, z.y - r * f_.equations(x, in_), multipliers(z.w, f_.inequalities(x, in_), r), lower, upper};
  }
  /// The function without constraints: (x, y, w, lower, upper, r, arguments...).
  Program augmented() const {
    return {"augmented_" + f_.name(), [this](const Datums& at) {
              const Vector<E> x(at[0]), y(at[1]), w(at[2]), lower(at[3]), upper(at[4]);
              const Number<E> r(at[5]);
              const Datums in = core::ad::slice(at, 6, at.size());
              const Vector<E> c = f_.equations(x, in);
              const auto square = [](const Vector<E>& v) { return dot(v, v); };
              const Vector<E> limits_below = Conditions<E>::is_limit(Vector<E>(in[3])) *
                                             multipliers(lower, f_.above(x, in), r),
                              limits_above = Conditions<E>::is_limit(Vector<E>(in[4])) *
                                             multipliers(upper, f_.below(x, in), r);
              const Number<E> inequal = square(multipliers(w, f_.inequalities(x, in), r)) +
                                        square(limits_below) + square(limits_above);
              return Datums{(f_.value(x, in) - dot(y, c) + 0.5 * r * square(c) + 0.5 / r * inequal).datum()};
            }};
  }

  State advance(const State& s) const {
    const Datums at = core::ad::joined(Datums{s.z.x.datum(), s.z.y.datum(), s.z.w.datum(), s.z.lower.datum(),
                                              s.z.upper.datum(), s.penalty.datum()},
                                       in_);
    // lbfgs stops by the gradient relative to 1 + |f|: a tenth of what is asked for, in the Euclidean norm.
    const MinimiseOptions inner{.tolerance = 0.1 * options_.tolerance,
                                .iterations = options_.inner_iterations};
    const Vector<E> x(lbfgs<E>(augmented(), at, inner, f_.loc())[0]);
    const Kkt<E> z = renewed(s.z, x, s.penalty);
    const Count n(in_[0]);
    const auto largest = [](const Vector<E>& v) { return Conditions<E>::largest(abs(v)); };
    const Number<E> slope = largest(f_.gradient(Conditions<E>::v_of(z), in_).slice(0, n) - z.lower + z.upper);
    const Number<E> products =
        max(largest(z.w * f_.inequalities(x, in_)),
            max(largest(z.lower * f_.above(x, in_)), largest(z.upper * f_.below(x, in_))));
    const Number<E> lack = max(f_.violation(x, in_), products);
    const Truth usable = both(finite(slope), finite(lack)),
                found = both(lack <= options_.tolerance,
                             slope <= options_.tolerance * (1.0 + abs(f_.value(x, in_))));
    const Number<E> penalty = select(lack > 0.25 * s.lack, min(10.0 * s.penalty, Number<E>(1e12)), s.penalty);
    return IF(
        usable, [&] { return State{z, penalty, lack, s.steps + 1, found, !found}; },
        [&] { return State{s.z, s.penalty, s.lack, s.steps + 1, Truth(false), Truth(false)}; });
  }

  const Conditions<E>& f_;
  const AugmentedLagrangianOptions& options_;
  Datums in_;
};

}  // namespace detail

/// The same as interior_point, with its problems, result, derivative and errors, by gradients alone. f, c and
/// g are asked outside of the constraints and limits, too; a sparsity is not used. The accuracy is that of
/// lbfgs.
template <class P, class X, class... A>
requires(detail::IsProblem<P>::value) auto augmented_lagrangian(const P& problem,
                                                                const AugmentedLagrangianOptions& options,
                                                                const X& x0, const A&... a) {
  using Start = core::detail::lifted_t<X>;
  static_assert(
      detail::Unknown<Start>,
      "augmented_lagrangian: expected x0 to be a Rep<double> or Rep<float>, or an array or tensor of those");
  static_assert(
      !P::is_sparse,
      "augmented_lagrangian: expected a problem without a sparsity, which only interior_point uses");
  using E = detail::element_of<Start>;
  AugmentedLagrangianOptions chosen = options;
  chosen.tolerance = detail::or_default<E>(options.tolerance, 1e-6, 1e-3);
  return detail::constrained<E>(
      "augmented_lagrangian",
      [chosen](const detail::Conditions<E>& conditions, const core::Datums& in) {
        const detail::AugmentedLagrangian<E> method(conditions, chosen, core::ad::slice(in, 1, in.size()));
        return method.search(detail::Vector<E>(in[0]));
      },
      nullptr, problem, core::Datums{}, core::here(options.place), core::detail::convert<Start>(x0),
      core::detail::convert<core::detail::lifted_t<A>>(a)...);
}
LANTERN_SOLVER_WITHOUT_OPTIONS(augmented_lagrangian, AugmentedLagrangianOptions)

}  // namespace lantern::solvers
