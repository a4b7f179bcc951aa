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

#include <functional>

#include "lantern/compiler/solvers/program.hpp"

namespace lantern::solvers::detail {

/// The w with (dr/dx) w = b or, transposed, (dr/dx)^T w = b, at (x, arguments...).
using JacobianSolver = std::function<Datum(const Datum& b, const Datums& at, bool transposed)>;

/// Vectors w with (dr/dx) w = b or, transposed, (dr/dx)^T w = b, by a method that is not differentiated itself.
template <FloatElement E>
using JacobianMethod = std::function<Vector<E>(const Vector<E>& b, const Datums& at, bool transposed)>;

/// A JacobianSolver from a method: its derivative is that of the equations, and needs their products with vectors and
/// further solutions alone. `symmetric`: dr/dx is.
template <FloatElement E>
JacobianSolver solved_with(Program residual, JacobianMethod<E> method, bool symmetric, std::string what, Location loc);

/// By the Jacobian dr/dx and its LU factors.
JacobianSolver dense_equations(Program residual, Location loc);

/// solver(starts..., arguments...) = (x, more...), where nothing of `more` is floating, and residual(x, arguments...) = 0,
/// with the derivative of what it solves. The solution does not depend on `starts`.
Datums solved_by(std::string what, Program solver, Program residual, const Datums& starts, const Datums& arguments,
                 JacobianSolver equations, const Location& loc);
/// How the equations of the derivative are solved, where no other way is given.
enum class Equations {
  dense,     ///< by the Jacobian dr/dx and its LU factors
  symmetric  ///< dr/dx is symmetric and positive definite: by conjugate gradients
};
Datums solved_by(std::string what, Program solver, Program residual, const Datums& starts, const Datums& arguments,
                 Equations equations, const Location& loc);

}  // namespace lantern::solvers::detail
