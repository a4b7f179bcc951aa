// Solutions of r(x, arguments) = 0, however found, differentiated by the implicit function theorem:
//
//   dx = -(dr/dx)^-1 (dr/darguments) darguments,
//   backward arguments' = -(dr/darguments)^T w with (dr/dx)^T w = x'.
//
// The rule refers to the solution itself, so that a derivative of any order meets it again. Source: Griewank
// & Walther, "Evaluating Derivatives", 2nd edition 2008, chapter 15; Blondel et al., "Efficient and modular
// implicit differentiation", 2022.
//
// Where a solver has not converged, and its result says so, there is no solution to differentiate: the
// numbers that come out mean nothing.
#pragma once

#include "lantern/compiler/solvers/program.hpp"

namespace lantern::solvers::detail {

/// How the equations of the derivative are solved.
enum class Equations {
  dense,     ///< the Jacobian dr/dx and its LU factors
  symmetric  ///< dr/dx is symmetric and positive definite: conjugate gradients, by its products with vectors
};

/// The w with A(at) w = b, where apply(w, at...) = A(at) w is linear in w, symmetric and positive definite,
/// by conjugate gradients: Hestenes & Stiefel 1952; Nocedal & Wright, "Numerical Optimization", 2nd edition
/// 2006, algorithm 5.2.
template <FloatElement E>
class SymmetricSolve : public std::enable_shared_from_this<SymmetricSolve<E>> {
 public:
  SymmetricSolve(Program apply, std::string what, Location loc)
      : apply_(std::move(apply)), what_(std::move(what)), loc_(std::move(loc)) {}

  Datum operator()(const Datum& b, const Datums& at) const {
    const auto rule = std::make_shared<core::ad::Rule>();
    rule->name = "solve_" + apply_.name;
    rule->what = what_;
    const auto self = this->shared_from_this();
    rule->primal = [self](const Datums& in) {
      return Datums{self->iterate(Vector<E>(in[0]), core::ad::slice(in, 1, in.size())).datum()};
    };
    rule->backward = [self](const Datums& residuals, const Datums& cotangents) {
      const auto [at_w, at_now] = self->parts(residuals);
      const Datum v = (*self)(cotangents[0], at_now);
      const Active active = rest_of(at_w);
      if (!any(active)) return Datums{v};
      return core::ad::joined(
          Datums{v},
          core::ad::vjp(self->apply_, at_w, active, {op(Opcode::neg_, {v}, self->loc_)}, false, self->loc_));
    };
    rule->linear = [self](const Datums& residuals, const Datums& tangents) {
      const auto [at_w, at_now] = self->parts(residuals);
      const Active active = rest_of(at_w);
      if (!any(active)) return Datums{(*self)(tangents[0], at_now)};
      const Datum change = core::ad::jvp(self->apply_, at_w, active,
                                         core::ad::slice(tangents, 1, tangents.size()), self->loc_)[1];
      return Datums{(*self)(op(Opcode::sub_, {tangents[0], change}, self->loc_), at_now)};
    };
    return core::ad::call_with_rule(rule, with_unknown(b, at), loc_)[0];
  }

 private:
  /// Of (b, at..., w): (w, at...) and at.
  std::pair<Datums, Datums> parts(const Datums& residuals) const {
    Datums at = core::ad::slice(residuals, 1, residuals.size() - 1);
    return {with_unknown(residuals.back(), at), at};
  }
  Vector<E> iterate(const Vector<E>& b, const Datums& at) const {
    const Number<E> least = rounding<E> * rounding<E> * dot(b, b);
    const auto [w, r, p, rr, k] = WHILE(
        std::tuple(zeros_like(b), b, b, dot(b, b), Count(0)),
        [&](const Vector<E>&, const Vector<E>&, const Vector<E>&, const Number<E>& square,
            const Count& iterations) { return both(square > least, iterations < 10 * b.dim(0)); },
        [&](const Vector<E>& x, const Vector<E>& residual, const Vector<E>& direction,
            const Number<E>& square, const Count& iterations) {
          const Vector<E> image(apply_.run(with_unknown(direction.datum(), at))[0]);
          const Number<E> step = square / dot(direction, image);
          const Vector<E> next = residual - step * image;
          const Number<E> next_square = dot(next, next);
          return std::tuple(x + step * direction, next, next + next_square / square * direction, next_square,
                            iterations + 1);
        });
    return w;
  }

  Program apply_;
  std::string what_;
  Location loc_;
};

/// A solver with the derivative of what it solves.
class Implicit : public std::enable_shared_from_this<Implicit> {
 public:
  /// solver(starts..., arguments...) = (x, more...), where nothing of `more` is floating, and
  /// residual(x, arguments...) = 0. `starts`: how many values the solution does not depend on.
  Implicit(std::string what, Program solver, Program residual, std::size_t starts, Equations equations,
           Location loc)
      : what_(std::move(what)),
        solver_(std::move(solver)),
        residual_(std::move(residual)),
        starts_(starts),
        equations_(equations),
        loc_(std::move(loc)) {}

  Datums operator()(const Datums& starts, const Datums& arguments) const {
    Datums in;
    for (const Datum& d : starts) in.push_back(op(Opcode::stop_gradient_, {d}, loc_));
    const auto rule = std::make_shared<core::ad::Rule>();
    const auto self = shared_from_this();
    rule->name = solver_.name;
    rule->what = what_;
    rule->primal = solver_.run;
    rule->backward = [self, n = in.size() + arguments.size()](const Datums& residuals,
                                                              const Datums& cotangents) {
      return self->backward(residuals, n, cotangents[0]);
    };
    rule->linear = [self, n = in.size() + arguments.size()](const Datums& residuals, const Datums& tangents) {
      return self->tangent(residuals, n, tangents);
    };
    return core::ad::call_with_rule(rule, core::ad::joined(in, arguments), loc_);
  }

 private:
  /// (x, arguments...) of `n` starts and arguments and the results.
  Datums solution(const Datums& residuals, std::size_t n) const {
    return with_unknown(residuals[n], core::ad::slice(residuals, starts_, n));
  }
  Datums backward(const Datums& residuals, std::size_t n, const Datum& cotangent) const {
    Datums out;
    for (std::size_t i = 0; i < starts_; ++i) out.push_back(core::zeros_like(residuals[i], loc_));
    const Datums at = solution(residuals, n);
    const Active active = rest_of(at);
    if (!any(active)) return out;
    const Datum w = op(Opcode::neg_, {inverse(at, cotangent, true)}, loc_);
    return core::ad::joined(std::move(out), core::ad::vjp(residual_, at, active, {w}, false, loc_));
  }
  Datums tangent(const Datums& residuals, std::size_t n, const Datums& tangents) const {
    const Datums at = solution(residuals, n);
    const Active active = rest_of(at);
    if (!any(active)) return {core::zeros_like(at[0], loc_)};
    const Datum change =
        core::ad::jvp(residual_, at, active, core::ad::slice(tangents, starts_, tangents.size()), loc_)[1];
    return {inverse(at, op(Opcode::neg_, {change}, loc_), false)};
  }
  /// (dr/dx)^-1 b or (dr/dx)^-T b.
  Datum inverse(const Datums& at, const Datum& b, bool transposed) const {
    if (equations_ == Equations::symmetric && b.type().is_tensor()) {
      const Program apply{residual_.name, [r = residual_, loc = loc_](const Datums& in) {
                            // in: w, x, arguments.
                            const Datums now = core::ad::slice(in, 1, in.size());
                            return Datums{core::ad::jvp(r, now, first_of(now), {in[0]}, loc)[1]};
                          }};
      if (b.type().element() == ir::Kind::f32)
        return (*std::make_shared<const SymmetricSolve<float>>(apply, what_, loc_))(b, at);
      return (*std::make_shared<const SymmetricSolve<double>>(apply, what_, loc_))(b, at);
    }
    const Datum j = jacobian_of(residual_, at, loc_);
    return divided(
        b, transposed && j.type().is_tensor() ? core::perform({Opcode::transpose_, 0, loc_}, {j}) : j, loc_);
  }

  std::string what_;
  Program solver_, residual_;
  std::size_t starts_;
  Equations equations_;
  Location loc_;
};

inline Datums solved_by(std::string what, Program solver, Program residual, const Datums& starts,
                        const Datums& arguments, Equations equations, const Location& loc) {
  return (*std::make_shared<const Implicit>(std::move(what), std::move(solver), std::move(residual),
                                            starts.size(), equations, loc))(starts, arguments);
}

}  // namespace lantern::solvers::detail
