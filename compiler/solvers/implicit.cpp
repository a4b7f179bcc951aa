// Rules by the implicit function theorem, and the linear equations that they solve.
#include "lantern/compiler/solvers/implicit.hpp"

namespace lantern::solvers::detail {

namespace {

/// A JacobianSolver from a method that is not differentiated itself: its derivative is that of the equations, and needs their
/// products with vectors and further solutions alone. `symmetric`: dr/dx is.
template <FloatElement E>
class JacobianSolve : public std::enable_shared_from_this<JacobianSolve<E>> {
 public:
  JacobianSolve(Program residual, JacobianMethod<E> method, bool symmetric, std::string what, Location loc)
      : residual_(std::move(residual)),
        method_(std::move(method)),
        symmetric_(symmetric),
        what_(std::move(what)),
        loc_(std::move(loc)) {}

  Datum operator()(const Datum& b, const Datums& at, bool transposed) const {
    const auto rule = std::make_shared<core::ad::Rule>();
    rule->name = "solve_" + residual_.name;
    rule->what = what_;
    const auto self = this->shared_from_this();
    const bool across = transposed && !symmetric_;
    rule->primal = [self, across](const Datums& in) {
      return Datums{self->method_(Vector<E>(in[0]), core::ad::slice(in, 1, in.size()), across).datum()};
    };
    rule->backward = [self, across](const Datums& residuals, const Datums& cotangents) {
      const auto [at_w, at_now] = self->parts(residuals);
      const Datum v = (*self)(cotangents[0], at_now, !across);
      const Active active = rest_of(at_w);
      if (!any(active)) return Datums{v};
      const Datum w = op(Opcode::neg_, {v}, self->loc_);
      return core::ad::joined(Datums{v}, core::ad::vjp(self->product(across), at_w, active, {w}, false, self->loc_));
    };
    rule->linear = [self, across](const Datums& residuals, const Datums& tangents) {
      const auto [at_w, at_now] = self->parts(residuals);
      const Active active = rest_of(at_w);
      if (!any(active)) return Datums{(*self)(tangents[0], at_now, across)};
      const Datum change = core::ad::jvp(self->product(across), at_w, active,
                                         core::ad::slice(tangents, 1, tangents.size()), self->loc_)[1];
      return Datums{(*self)(op(Opcode::sub_, {tangents[0], change}, self->loc_), at_now, across)};
    };
    return core::ad::call_with_rule(rule, with_unknown(b, at), loc_)[0];
  }

  /// (w, x, arguments...) -> (dr/dx) w, or transposed.
  Program product(bool transposed) const {
    return {residual_.name, [r = residual_, transposed, loc = loc_](const Datums& in) {
              const Datums now = core::ad::slice(in, 1, in.size());
              if (transposed) return core::ad::vjp(r, now, first_of(now), {in[0]}, false, loc);
              return Datums{core::ad::jvp(r, now, first_of(now), {in[0]}, loc)[1]};
            }};
  }

 private:
  /// Of (b, at..., w): (w, at...) and at.
  std::pair<Datums, Datums> parts(const Datums& residuals) const {
    Datums at = core::ad::slice(residuals, 1, residuals.size() - 1);
    return {with_unknown(residuals.back(), at), at};
  }

  Program residual_;
  JacobianMethod<E> method_;
  bool symmetric_;
  std::string what_;
  Location loc_;
};
/// The w with A w = b by conjugate gradients, where product(w, at...) = A w, and A is symmetric and positive definite:
/// Hestenes & Stiefel 1952; Nocedal & Wright, "Numerical Optimization", 2nd edition 2006, algorithm 5.2.
template <FloatElement E>
Vector<E> conjugate_gradients(const Program& product, const Vector<E>& b, const Datums& at) {
  const Number<E> least = rounding<E> * rounding<E> * dot(b, b);
  const auto [w, r, p, rr, k] = WHILE(
      std::tuple(zeros_like(b), b, b, dot(b, b), Count(0)),
      [&](const Vector<E>&, const Vector<E>&, const Vector<E>&, const Number<E>& square, const Count& iterations) {
        return both(square > least, iterations < 10 * b.dim(0));
      },
      [&](const Vector<E>& x, const Vector<E>& residual, const Vector<E>& direction, const Number<E>& square,
          const Count& iterations) {
        const Vector<E> image(product.run(with_unknown(direction.datum(), at))[0]);
        const Number<E> step = square / dot(direction, image);
        const Vector<E> next = residual - step * image;
        const Number<E> next_square = dot(next, next);
        return std::tuple(x + step * direction, next, next + next_square / square * direction, next_square, iterations + 1);
      });
  return w;
}


}  // namespace

template <FloatElement E>
JacobianSolver solved_with(Program residual, JacobianMethod<E> method, bool symmetric, std::string what,
                           Location loc) {
  return [solve = std::make_shared<const JacobianSolve<E>>(std::move(residual), std::move(method), symmetric, std::move(what),
                                                           std::move(loc))](const Datum& b, const Datums& at, bool transposed) {
    return (*solve)(b, at, transposed);
  };
}

template JacobianSolver solved_with<float>(Program, JacobianMethod<float>, bool, std::string, Location);
template JacobianSolver solved_with<double>(Program, JacobianMethod<double>, bool, std::string, Location);

JacobianSolver dense_equations(Program residual, Location loc) {
  return [r = std::move(residual), loc = std::move(loc)](const Datum& b, const Datums& at, bool transposed) {
    const Datum j = jacobian_of(r, at, loc);
    return divided(b, transposed && j.type().is_tensor() ? core::perform({Opcode::transpose_, 0, loc}, {j}) : j, loc);
  };
}

namespace {

/// By conjugate gradients: dr/dx is symmetric and positive definite.
JacobianSolver symmetric_equations(Program residual, std::string what, Location loc) {
  return [=](const Datum& b, const Datums& at, bool transposed) {
    const auto by = [&]<FloatElement E>(E) {
      const Program product = JacobianSolve<E>(residual, nullptr, true, what, loc).product(false);
      return solved_with<E>(
          residual, [product](const Vector<E>& c, const Datums& here, bool) { return conjugate_gradients<E>(product, c, here); },
          true, what, loc)(b, at, transposed);
    };
    if (!b.type().is_tensor()) return dense_equations(residual, loc)(b, at, transposed);
    return b.type().element() == ir::Kind::f32 ? by(float()) : by(double());
  };
}

/// A solver with the derivative of what it solves.
class Implicit : public std::enable_shared_from_this<Implicit> {
 public:
  /// solver(starts..., arguments...) = (x, more...), where nothing of `more` is floating, and
  /// residual(x, arguments...) = 0. `starts`: how many values the solution does not depend on.
  Implicit(std::string what, Program solver, Program residual, std::size_t starts, JacobianSolver equations, Location loc)
      : what_(std::move(what)),
        solver_(std::move(solver)),
        residual_(std::move(residual)),
        starts_(starts),
        equations_(std::move(equations)),
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
    const Datum w = op(Opcode::neg_, {equations_(cotangent, at, true)}, loc_);
    return core::ad::joined(std::move(out), core::ad::vjp(residual_, at, active, {w}, false, loc_));
  }
  Datums tangent(const Datums& residuals, std::size_t n, const Datums& tangents) const {
    const Datums at = solution(residuals, n);
    const Active active = rest_of(at);
    if (!any(active)) return {core::zeros_like(at[0], loc_)};
    const Datum change =
        core::ad::jvp(residual_, at, active, core::ad::slice(tangents, starts_, tangents.size()), loc_)[1];
    return {equations_(op(Opcode::neg_, {change}, loc_), at, false)};
  }

  std::string what_;
  Program solver_, residual_;
  std::size_t starts_;
  JacobianSolver equations_;
  Location loc_;
};

}  // namespace

Datums solved_by(std::string what, Program solver, Program residual, const Datums& starts,
                        const Datums& arguments, JacobianSolver equations, const Location& loc) {
  return (*std::make_shared<const Implicit>(std::move(what), std::move(solver), std::move(residual), starts.size(),
                                            std::move(equations), loc))(starts, arguments);
}
Datums solved_by(std::string what, Program solver, Program residual, const Datums& starts, const Datums& arguments,
                 Equations equations, const Location& loc) {
  JacobianSolver chosen =
      equations == Equations::dense ? dense_equations(residual, loc) : symmetric_equations(residual, what, loc);
  return solved_by(std::move(what), std::move(solver), std::move(residual), starts, arguments, std::move(chosen), loc);
}

}  // namespace lantern::solvers::detail
