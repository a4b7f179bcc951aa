// Minima under constraints: interior_point, augmented_lagrangian, kkt_sparsity.
#include "solver_checks.hpp"

using namespace lantern;
using namespace lantern::test;
using namespace lantern::test::solver_checks;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

template <class Test>
void eagerly_and_by_tcc(const Test& test) {
  test([](auto f) { return eager(f); });
  test([](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
}

/// Hock & Schittkowski, "Test Examples for Nonlinear Programming Codes", 1981, problem 71.
D hs71(A x) { return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]; }
A hs71_inequality(A x) { return list({x[0] * x[1] * x[2] * x[3] - 25.0}); }
A hs71_equation(A x) { return list({dot(x, x) - 40.0}); }

}  // namespace

TEST_CASE("interior point: problem 71 of Hock and Schittkowski", "[solvers]") {
  const auto f = [](A x0) {
    return solvers::interior_point(
        solvers::problem(hs71).equal_zero(hs71_equation).at_least_zero(hs71_inequality).between(1.0, 5.0),
        x0);
  };
  eagerly_and_by_tcc([&](const auto& run) {
    const auto r = run(f)(Vector{1, 5, 5, 1});
    CHECK(r.converged);
    CHECK(r.iterations < 30);
    CHECK(r.value == Approx(17.0140173).epsilon(1e-8));
    const double expected[] = {1.0, 4.7429994, 3.8211503, 1.3794082};
    for (std::size_t i = 0; i < 4; ++i) CHECK(r.x[i] == Approx(expected[i]).epsilon(1e-6));
    CHECK(r.violation < 1e-7);
    CHECK(r.at_least[0] == Approx(0.5522937).epsilon(1e-5));
    CHECK(r.equal[0] == Approx(-0.1614686).epsilon(1e-5));
    CHECK(r.lower[0] == Approx(1.0878712).epsilon(1e-5));
  });
}

TEST_CASE("constrained problems with known solutions, by both methods", "[solvers]") {
  const auto rosenbrock = [](A x) {
    return (1.0 - x[0]) * (1.0 - x[0]) + 100.0 * (x[1] - x[0] * x[0]) * (x[1] - x[0] * x[0]);
  };
  const auto disc = solvers::problem(rosenbrock).at_least_zero([](A x) { return 1.0 - dot(x, x); });
  const auto check = [](const auto& solver, const Vector& start, const Vector& expected, double epsilon) {
    eagerly_and_by_tcc([&](const auto& run) {
      const auto r = run(solver)(start);
      CHECK(r.converged);
      for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(r.x[i] == Approx(expected[i]).epsilon(epsilon).margin(epsilon));
    });
  };
  // SciPy 1.17.1: minimize(..., method="SLSQP", tol=1e-14).
  const Vector on_circle{0.786415154, 0.617698316};
  check([=](A x) { return solvers::interior_point(disc, x); }, {0, 0}, on_circle, 1e-6);
  check([=](A x) { return solvers::interior_point(disc, x); }, {-3, 4}, on_circle, 1e-6);
  check([=](A x) { return solvers::augmented_lagrangian(disc, x); }, {0, 0}, on_circle, 1e-5);
  // Limits alone: the free minimum is (1, 1).
  const auto box = solvers::problem(rosenbrock).between(-inf, 0.5);
  check([=](A x) { return solvers::interior_point(box, x); }, {-1.2, 1}, {0.5, 0.25}, 1e-6);
  check([=](A x) { return solvers::augmented_lagrangian(box, x); }, {-1.2, 1}, {0.5, 0.25}, 1e-5);
  // Nothing at all, and a start on the limits.
  check([=](A x) { return solvers::interior_point(solvers::problem(rosenbrock), x); }, {-1.2, 1}, {1, 1},
        1e-6);
  check([=](A x) { return solvers::interior_point(solvers::problem(rosenbrock).between(-2.0, 2.0), x); },
        {2, -2}, {1, 1}, 1e-6);
  // A saddle at the start, which a method without a shift takes for the solution: -x y on x + y = 2 and near
  // (0, 0).
  const auto saddle = solvers::problem([](A x) { return -1.0 * x[0] * x[1]; }).equal_zero([](A x) {
    return x[0] + x[1] - 2.0;
  });
  check([=](A x) { return solvers::interior_point(saddle, x); }, {0, 0}, {1, 1}, 1e-7);
  check([=](A x) { return solvers::augmented_lagrangian(saddle, x); }, {0.5, 0}, {1, 1}, 1e-5);
  // Functions that are defined within the limits only: the centre of logarithms.
  const auto inside = solvers::problem([](A x) {
                        return sum(x * log(x));
                      }).equal_zero([](A x) {
                          return sum(x) - 1.0;
                        }).between(0.0, inf);
  check([=](A x) { return solvers::interior_point(inside, x); }, {5, 0.001, 1, -3}, {0.25, 0.25, 0.25, 0.25},
        1e-6);
  // Maratos: full steps along the circle raise every merit function near the solution.
  const auto maratos = solvers::problem([](A x) {
                         return 2.0 * (dot(x, x) - 1.0) - x[0];
                       }).equal_zero([](A x) { return dot(x, x) - 1.0; });
  check([=](A x) { return solvers::interior_point(maratos, x); }, {0.8, 0.6}, {1, 0}, 1e-7);
  // A number.
  const auto number = [](D x0, D least) {
    return solvers::interior_point(
        solvers::problem([](D x, D) { return x * x; }).at_least_zero([](D x, D l) { return x - l; }), x0,
        least);
  };
  eagerly_and_by_tcc([&](const auto& run) {
    const auto r = run(number)(5.0, 2.0);
    CHECK(r.x == Approx(2));
    CHECK(r.at_least[0] == Approx(4));
  });
}

TEST_CASE("derivatives of a constrained minimum", "[solvers]") {
  // The largest rectangle x y with x + a y = b: x = b / 2, y = b / (2 a), value b^2 / (4 a); a limit x <= c
  // may hold.
  const auto area = [](A p) {
    const auto rectangle = solvers::problem([](A x, A) {
                             return -1.0 * x[0] * x[1];
                           }).equal_zero([](A x, A q) {
                               return x[0] + q[0] * x[1] - q[1];
                             }).between(0.0, p[2]);
    const auto r = solvers::interior_point(rectangle, {.tolerance = 1e-11}, list({0.5, 0.5}), p);
    return list({r.x[0], r.x[1], -1.0 * r.value});
  };
  const auto number = [area](A p) {
    const A r = area(p);
    return r[0] + 2.0 * r[1] + 3.0 * r[2];
  };
  // Free: by a and b, and none by the limit.
  check_closed_form(
      value_and_gradients(number), {2, 3, 10},
      with_gradient_twice({1.5 + 1.5 + 3.375, -0.75 * 1.0 - 3 * 9.0 / 16, 0.5 + 0.5 + 3 * 6.0 / 8, 0}), 1e-6);
  // x = c holds: y = (b - c) / a, value c (b - c) / a.
  const auto both_modes = value_and_gradients(number);
  const Vector held = eager(both_modes)(Vector{2, 2.5, 1}),
               expected{4.75, -1.875, 2.5, 0.75, -1.875, 2.5, 0.75};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(held[i] == Approx(expected[i]).epsilon(1e-6));
  // Of second order, where x is free: (a, b) alone.
  const auto h = eager(hessian(number))(Vector{2, 3, 10});
  const double second[] = {2.4375, -1.375, 0, -1.375, 0.75, 0, 0, 0, 0};
  for (std::size_t i = 0; i < 9; ++i) CHECK(h.data[i] == Approx(second[i]).epsilon(1e-6).margin(1e-6));
  // An inequality; the multiplier is the slope of the value by the right-hand side.
  const auto nearest = [](A p) {
    const auto halfplane = solvers::problem([](A x, A q) {
                             return 0.5 * ((x[0] - q[0]) * (x[0] - q[0]) + (x[1] - q[1]) * (x[1] - q[1]));
                           }).at_least_zero([](A x, A q) { return x[0] + x[1] - q[2]; });
    return solvers::augmented_lagrangian(halfplane, {.tolerance = 1e-9}, list({0.0, 0.0}), p);
  };
  const auto value = [nearest](A p) { return nearest(p).value; };
  const auto multiplier = [nearest](A p) { return nearest(p).at_least[0]; };
  const Vector p{0.5, -1, 2};  // the distance is 2.5 / sqrt(2)
  CHECK(eager(value)(p) == Approx(0.5 * 2.5 * 2.5 / 2).epsilon(1e-6));
  CHECK(eager(multiplier)(p) == Approx(1.25).epsilon(1e-6));
  CHECK(eager(grad(value))(p)[2] == Approx(1.25).epsilon(1e-6));
  CHECK(compile(grad(multiplier), {.target = Target::c})(p)[2] == Approx(0.5).epsilon(1e-6));
}

namespace {

// A hanging chain: heights of joints one unit apart, springs between them, on a floor that rises.
constexpr std::int64_t joints = 60;
D chain_energy(A y, D weight) {
  return weight * sum(y) + FOR(0, joints - 1, D(0.0), [&](I i, D e) {
           const D d = y[i + 1] - y[i];
           return e + 40.0 * d * d + d * d * d * d;
         });
}
A chain_ends(A y, D) { return list({y[0] - 1.0, y[joints - 1] - 2.0}); }
A chain_floor(A y, D) {
  return FOR(0, joints, y, [](I i, A h) { return h.set(i, h[i] - 0.02 * cast<double>(i)); });
}
auto chain() {
  return solvers::problem(chain_energy).equal_zero(chain_ends).at_least_zero(chain_floor).between(-5.0, 5.0);
}

}  // namespace

TEST_CASE("interior point with a sparsity is the same as without", "[solvers]") {
  const auto pattern = solvers::kkt_sparsity(chain())(Vector(joints, 0.5), 0.1);
  CHECK(pattern.hessian.rows == 2 * joints + 2);
  CHECK(pattern.hessian.forward + pattern.hessian.reverse < 10);
  CHECK(pattern.band < 8);
  const auto dense = [](A y, D w) { return solvers::interior_point(chain(), y, w); };
  const auto captured = [&](A y, D w) { return solvers::interior_point(chain().sparse(pattern), y, w); };
  using Pattern = solvers::KktSparsityOf<I, Rep<Array<std::int64_t>>>;
  const auto given = [](A y, D w, Pattern s) { return solvers::interior_point(chain().sparse(s), y, w); };
  const Vector start(joints, 0.5);
  const auto expected = compile(dense, {.target = Target::c})(start, 0.6);
  REQUIRE(expected.converged);
  CHECK(expected.x[0] == Approx(1));
  CHECK(expected.x[joints - 1] == Approx(2));
  std::int64_t lying = 0;
  for (std::int64_t i = 0; i < joints; ++i)
    lying += expected.x[static_cast<std::size_t>(i)] < 0.02 * static_cast<double>(i) + 1e-6;
  CHECK(lying > 5);
  const auto same = [&](const auto& r) {
    REQUIRE(r.converged);
    for (std::size_t i = 0; i < joints; ++i) CHECK(r.x[i] == Approx(expected.x[i]).epsilon(1e-6));
  };
  same(eager(given)(start, 0.6, pattern));
  same(compile(given, {.target = Target::c})(start, 0.6, pattern));
  same(compile(captured, {.target = Target::c})(start, 0.6));
  // Its derivative by the weight, beside a difference.
  const auto energy = [](A y, D w) {
    return solvers::interior_point(chain(), {.tolerance = 1e-10}, y, w).value;
  };
  const auto f = compile(energy, {.target = Target::c});
  CHECK(compile(grad<1>(energy), {.target = Target::c})(start, 0.6) ==
        Approx((f(start, 0.601) - f(start, 0.599)) / 0.002).epsilon(1e-5));
}

// How the whole chain lies depends on its weight: derivatives of the solution itself, by the band and by the dense system.
TEST_CASE("derivatives of a constrained minimum by a sparsity are those of the dense system", "[solvers]") {
  const auto pattern = solvers::kkt_sparsity(chain())(Vector(joints, 0.5), 0.1);
  const solvers::InteriorPointOptions options{.tolerance = 1e-10};
  const auto along = [](const auto& r) {
    return dot(r.x, r.x) + 0.1 * sum(r.equal) + 0.01 * sum(r.at_least) + sum(r.lower * r.lower);
  };
  const auto dense = [&](A y, D w) { return along(solvers::interior_point(chain(), options, y, w)); };
  const auto sparse = [&](A y, D w) { return along(solvers::interior_point(chain().sparse(pattern), options, y, w)); };
  const Vector start(joints, 0.5);
  const auto f = compile(sparse, {.target = Target::c});
  const double by_dense = compile(grad<1>(dense), {.target = Target::c})(start, 0.6);
  CHECK(std::abs(by_dense) > 1);
  CHECK(by_dense == Approx((f(start, 0.6005) - f(start, 0.5995)) / 0.001).epsilon(1e-4));
  CHECK(compile(grad<1>(sparse), {.target = Target::c})(start, 0.6) == Approx(by_dense).epsilon(1e-6));
  CHECK(compile(grad<mode::forward, 1>(sparse), {.target = Target::c})(start, 0.6) == Approx(by_dense).epsilon(1e-6));
  CHECK(eager(grad<1>(sparse))(start, 0.6) == Approx(by_dense).epsilon(1e-6));
  // The second derivative, forward over reverse.
  const auto slope = compile(grad<1>(sparse), {.target = Target::c});
  CHECK(compile(hvp<1>(sparse), {.target = Target::c})(start, 0.6, 1.0) ==
        Approx((slope(start, 0.6005) - slope(start, 0.5995)) / 0.001).epsilon(1e-3));
}

TEST_CASE("constrained minima of floats", "[solvers]") {
  using F = Rep<float>;
  using FA = Rep<Array<float>>;
  const auto f = [](FA x, F b) {
    return solvers::interior_point(solvers::problem([](FA v, F) {
                                     return dot(v, v);
                                   }).equal_zero([](FA v, F c) {
                                       return sum(v) - c;
                                     }).between(-1.0F, 1.0F),
                                   x, b);
  };
  eagerly_and_by_tcc([&](const auto& run) {
    const auto r = run(f)(std::vector<float>{0.5F, 0.0F}, 1.0F);
    CHECK(r.converged);
    CHECK(r.x[0] == Approx(0.5).epsilon(1e-3));
    CHECK(r.equal[0] == Approx(1.0).epsilon(1e-2));
  });
}

TEST_CASE("constrained problems that cannot be solved", "[solvers][errors]") {
  // x >= 1 and x <= 0 at once.
  const auto empty = [](A x) {
    return solvers::interior_point(solvers::problem([](A v) { return dot(v, v); }).at_least_zero([](A v) {
      return concat(v - 1.0, -v);
    }),
                                   x);
  };
  eagerly_and_by_tcc([&](const auto& run) {
    const auto r = run(empty)(Vector{3});
    CHECK_FALSE(r.converged);
    CHECK(r.violation > 0.1);
  });
  const auto empty_too = [](A x) {
    return solvers::augmented_lagrangian(solvers::problem([](A v) {
                                           return dot(v, v);
                                         }).at_least_zero([](A v) { return concat(v - 1.0, -v); }),
                                         x);
  };
  CHECK_FALSE(eager(empty_too)(Vector{3}).converged);
  const auto endless = [](A x) {
    return solvers::interior_point(solvers::problem([](A v) { return sum(v); }), {.iterations = 30}, x);
  };
  CHECK_FALSE(eager(endless)(Vector{3}).converged);
  const auto square = [](A v) { return dot(v, v); };
  check_refused([&](A x) { return solvers::interior_point(solvers::problem(square).between(1.0, 1.0), x).x; },
                "interior_point: expected each lower limit to lie below its upper one; where x is known, use "
                "equal_zero",
                Vector{3});
  check_refused(
      [&](A x) { return solvers::interior_point(solvers::problem(square).between(x.slice(0, 1), 5.0), x).x; },
      "interior_point: expected as many limits as the unknown has numbers", Vector{3, 4});
  check_refused(
      [&](A x) { return solvers::interior_point(solvers::problem([](A v) { return v; }), x).x; },
      "interior_point: expected the objective to give a number of the unknown's element type, got f64[",
      Vector{3, 4});
  check_refused(
      [&](A x) {
        return solvers::interior_point(solvers::problem(square).equal_zero([](A v) { return outer(v, v); }),
                                       x)
            .x;
      },
      "interior_point: expected equal_zero to give a number or a vector of the unknown's element type, got "
      "f64[",
      Vector{3, 4});
  check_refused([&](A x) { return solvers::augmented_lagrangian(solvers::problem(square), x).x; },
                "augmented_lagrangian: expected the unknown to have elements, got an empty vector", Vector{});
}
