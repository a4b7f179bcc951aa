// Stiff equations and the continuous adjoint: reference values, order, derivatives against closed forms,
// differences and each other; what is refused.
#include "solver_checks.hpp"

using namespace lantern;
using namespace lantern::test;
using namespace lantern::test::solver_checks;

namespace {

A van_der_pol(D, A y, D mu) { return list({y[1], mu * ((1.0 - y[0] * y[0]) * y[1]) - y[0]}); }
A robertson(D, A y, A k) {
  const D a = k[0] * y[0], b = k[1] * y[1] * y[1], c = k[2] * y[1] * y[2];
  return list({c - a, a - b - c, b});
}

}  // namespace

TEST_CASE("tr_bdf2 solves stiff equations", "[solvers]") {
  // The reference values of the test set of Mazzia & Magherini, "Test set for initial value problem solvers",
  // 2008.
  const auto oscillator = [](A y, D mu) {
    return solvers::tr_bdf2(van_der_pol, {.relative = 1e-7}, y, 0.0, 2000.0, mu);
  };
  const auto v = compile(oscillator, {.target = Target::c, .opt = 0})(Vector{2, 0}, 1000.0);
  CHECK(v.finished);
  CHECK(v.y[0] == Approx(1.706167732170469).epsilon(1e-4));
  CHECK(v.y[1] == Approx(-0.8928097010248125e-3).epsilon(1e-3));
  // An explicit method would need some 10^6 steps.
  CHECK(v.steps < 10'000);

  // Robertson's kinetics at t = 40 (Hairer & Wanner II, IV.1).
  const auto kinetics = [](A k) {
    return solvers::tr_bdf2(robertson, {.relative = 1e-6, .absolute = 1e-10}, list({1.0, 0.0, 0.0}), 0.0,
                            40.0, k);
  };
  const auto r = eager(kinetics)(Vector{0.04, 3e7, 1e4});
  CHECK(r.finished);
  CHECK(r.steps < 500);
  CHECK(r.y[0] == Approx(0.7158270688).epsilon(1e-4));
  CHECK(r.y[1] == Approx(9.185534765e-6).epsilon(1e-4));
  CHECK(r.y[2] == Approx(0.2841637457).epsilon(1e-4));
}

TEST_CASE("tr_bdf2 is of order 2", "[solvers]") {
  // The error goes with the power 2/3 of the tolerance, by which a step's error, of order 3, is judged.
  const auto error = [](double tolerance) {
    const auto f = [tolerance](D k) {
      return solvers::tr_bdf2([](D t, D y, D q) { return -q * (y - cos(t)) - sin(t); },
                              {.relative = tolerance, .absolute = tolerance}, 1.0, 0.0, 10.0, k);
    };
    const auto r = eager(f)(5.0);
    return std::pair(std::abs(r.y - std::cos(10.0)), r.steps);
  };
  const auto [coarse, few] = error(1e-4);
  const auto [fine, many] = error(1e-7);
  CHECK(fine < coarse / 20);
  CHECK(double(many) / double(few) == Approx(10).epsilon(0.3));
}

TEST_CASE("derivatives of a stiff integration", "[solvers]") {
  // y = x0 exp(-x1 t) by numbers; the oscillator by vectors.
  const auto number = [](A x) {
    return solvers::tr_bdf2(decay, {.relative = 1e-7}, x[0], x[2], x[3], x[1]).y;
  };
  const Vector x{1.5, 2.0, 0.25, 1.5};
  const double y = 1.5 * std::exp(-2.5);
  check_closed_form(value_and_gradients(number), x,
                    with_gradient_twice({y, y / 1.5, -1.25 * y, 2 * y, -2 * y}), 1e-4);
  const auto vector = [](A p) {
    return solvers::tr_bdf2(swing_array, {.relative = 1e-6}, list({p[0], 0.0}), 0.0, 1.0, p[1] * p[1]).y[0];
  };
  check_all(
      {.order = 1, .without_unwind = false, .clang = false, .tolerance = 1e-6, .difference_tolerance = 1e-3},
      "vector", vector, {1.5, 2.0});
  // Robertson's by the rates, against differences of a finer integration.
  const auto kinetics = [](double tolerance) {
    return [tolerance](A k) {
      return solvers::tr_bdf2(robertson, {.relative = tolerance, .absolute = 1e-4 * tolerance},
                              list({1.0, 0.0, 0.0}), 0.0, 40.0, k)
          .y[2];
    };
  };
  const Vector k{0.04, 3e7, 1e4};
  const Vector g = compile(grad(kinetics(1e-6)), {.target = Target::c, .opt = 0})(k);
  const auto fine = compile(kinetics(1e-8), {.target = Target::c, .opt = 0});
  for (std::size_t i = 0; i < 3; ++i) {
    Vector up = k, down = k;
    up[i] *= 1.01, down[i] *= 0.99;
    CHECK(g[i] == Approx((fine(up) - fine(down)) / (0.02 * k[i])).epsilon(1e-3));
  }
}

TEST_CASE("the continuous adjoint", "[solvers]") {
  const auto f = [](A x) {
    return solvers::odeint_adjoint(swing, {.relative = 1e-8}, Oscillator{x[0], 0.0}, x[2], x[3], x[1] * x[1])
        .y.place;
  };
  const Vector x{1.5, 2.0, 0.25, 1.5};
  check_closed_form([g = grad(std::function<D(A)>(f))](A a) -> A { return g(a); }, x,
                    [&] {
                      const Vector all = oscillation(x);
                      return Vector(all.begin() + 1, all.end());
                    }(),
                    1e-6);
  // Forward mode: the transpose. And what the discrete adjoint says.
  CHECK(eager(grad<mode::forward>(std::function<D(A)>(f)))(x)[1] == Approx(oscillation(x)[2]).epsilon(1e-6));
  const auto decayed = [](D y, D k) {
    return solvers::odeint_adjoint(decay, {.relative = 1e-9}, y, 0.0, 1.0, k).y;
  };
  const auto slope = [decayed](D y, D k) { return std::get<1>(grad(decayed)(y, k)); };
  // d2/dk2 of y exp(-k).
  CHECK(eager(grad<1>(sig<double(double, double)>(slope)))(2.0, 0.5) ==
        Approx(2 * std::exp(-0.5)).epsilon(1e-6));
}

TEST_CASE("what tr_bdf2 refuses", "[solvers][errors]") {
  check_refused([](A y) { return solvers::tr_bdf2([](D, A v) { return v; }, y, 0.0, 1.0).y; },
                "tr_bdf2: expected a state with at least one number, got an empty one", Vector{});
  const auto captures = [](D k) { return solvers::tr_bdf2([=](D, D y) { return -k * y; }, 1.0, 0.0, 1.0).y; };
  CHECK(error_of([&] {
          eager(grad(captures))(1.0);
        }).find("tr_bdf2: the function captures a value that is being differentiated") != std::string::npos);
}
