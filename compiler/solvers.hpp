// Solvers for differential equations, roots, least squares and minima, written in Rep: they are staged,
// compiled and differentiated with the program that calls them.
//
//   #include <lantern/solvers.hpp>
//   A pendulum(D t, A y, D k) { return y.set(0, y[1]).set(1, -k * sin(y[0])); }
//   D angle(A y0, D k) { return solvers::dormand_prince(pendulum, y0, 0.0, 10.0, k).y[0]; }
//   D root(D a) { return solvers::newton([](D x, D s) { return x * x - s; }, 1.0, a).x; }
//   grad(angle), grad(grad(root)), ...
//
// Each takes the function, options (which may be left out: `newton(f, {.tolerance = 1e-8}, x0, a)`), where to
// start, and then what else the function takes. Unknowns and states are of double or of float; tolerances are
// chosen by that, unless they are given. Solutions of equations (roots, least squares, minima, the
// stages of stiff integrators) are differentiated by the implicit function theorem, so what their functions
// need that is differentiated is passed as such an argument, not captured. Iterations are bounded, and
// results say whether they have converged.
#pragma once

#include "lantern/compiler/solvers/adjoint.hpp"               // odeint_adjoint
#include "lantern/compiler/solvers/augmented_lagrangian.hpp"  // augmented_lagrangian
#include "lantern/compiler/solvers/constrained.hpp"           // problem
#include "lantern/compiler/solvers/dense_output.hpp"          // dormand_prince_dense
#include "lantern/compiler/solvers/events.hpp"                // dormand_prince_events
#include "lantern/compiler/solvers/interior_point.hpp"        // interior_point
#include "lantern/compiler/solvers/kkt_sparsity.hpp"          // kkt_sparsity
#include "lantern/compiler/solvers/least_squares.hpp"         // gauss_newton, levenberg_marquardt
#include "lantern/compiler/solvers/linear.hpp"                // lu, solve
#include "lantern/compiler/solvers/minimise.hpp"              // lbfgs, newton_cg
#include "lantern/compiler/solvers/root.hpp"                  // newton, bisect, brent
#include "lantern/compiler/solvers/runge_kutta.hpp"           // rk4, dormand_prince, dormand_prince_at
#include "lantern/compiler/solvers/stiff.hpp"                 // tr_bdf2
#include "lantern/lantern.hpp"

#undef LANTERN_SOLVER_WITHOUT_OPTIONS
