// Integrators by explicit steps and the dense linear solver: exact solutions, orders, derivatives against
// closed forms, differences and each other; what is refused.
#include "solver_checks.hpp"

using namespace lantern;
using namespace lantern::test;
using namespace lantern::test::solver_checks;

TEST_CASE("a dense system with a pivot of 0", "[solvers]") {
  // 2 y + z = 7, x + y + z = 6, 4 x + y + 2 z = 12
  const auto f = [](M a, A b) { return solvers::solve(a, b); };
  const TensorValue<double> a({0, 2, 1, 1, 1, 1, 4, 1, 2}, {3, 3});
  const auto test = [&](const auto& run) {
    const Vector x = run(f)(a, Vector{7, 6, 12});
    CHECK(x[0] == Approx(1));
    CHECK(x[1] == Approx(2));
    CHECK(x[2] == Approx(3));
  };
  test([](auto g) { return eager(g); });
  test([](auto g) { return compile(g, {.target = Target::c, .opt = 0}); });
  test([](auto g) { return compile(g, {.target = Target::cpp}); });
  const Vector singular = eager(f)(TensorValue<double>({1, 2, 2, 4}, {2, 2}), Vector{1, 1});
  CHECK_FALSE(std::isfinite(singular[0] + singular[1]));
}

TEST_CASE("LU factors solve for several right-hand sides, and are differentiated by their steps", "[solvers]") {
  const auto f = [](M a, A b) {
    const auto lu = solvers::lu(a);
    const Rep<Tensor<double>> x = solvers::solve(lu, as_tensor(b));
    return std::tuple(lu.rows, x, solvers::solve(lu, x));
  };
  const TensorValue<double> a({0, 2, 1, 1, 1, 1, 4, 1, 2}, {3, 3});
  const auto test = [&](const auto& run) {
    const auto [rows, x, y] = run(f)(a, Vector{7, 6, 12});
    CHECK(rows == std::vector<std::int64_t>{2, 0, 1});
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(x.data[i] == Approx(static_cast<double>(i + 1)));
      const double back = a.data[3 * i] * y.data[0] + a.data[3 * i + 1] * y.data[1] + a.data[3 * i + 2] * y.data[2];
      CHECK(back == Approx(x.data[i]));
    }
  };
  test([](auto g) { return eager(g); });
  test([](auto g) { return compile(g, {.target = Target::c, .opt = 0}); });
  const auto determinant = [](A x) {
    M m = fill(D(0.0), 3, 3);
    m = FOR(0, 9, m, [&](I i, M t) { return t.set(i / 3, i % 3, x[i]); });
    const auto lu = solvers::lu(m);
    return FOR(0, 3, D(1.0), [&](I i, D p) { return p * lu.factors(i, i); });
  };
  check_all({.tolerance = 1e-9}, "lu", determinant, {0.1, 2, 1, 1, 1, 0.5, 3, 1, 2});
  const auto factors = [](M m) { return solvers::lu(m).factors; };
  const TensorValue<double> wide({2, 3}), tall({3, 2});
  CHECK_THROWS_WITH(eager(factors)(wide), Catch::Contains("lu: expected a square matrix, got 2 rows and 3 columns"));
  CHECK_THROWS_WITH(compile(factors, {.target = Target::c})(tall),
                    Catch::Contains("solvers_test.cpp:") &&
                        Catch::Contains("lu: expected a square matrix, got 3 rows and 2 columns"));
}

TEST_CASE("derivatives of a dense system's solution", "[solvers]") {
  // Matrix and right-hand side from one array, to third order in all.
  const auto f = [](A x) {
    M a = fill(D(0.0), 3, 3);
    a = FOR(0, 9, a, [&](I i, M m) { return m.set(i / 3, i % 3, x[i]); });
    const A b = x.slice(9, 12), y = solvers::solve(a, b);
    return y[0] * y[1] + y[2];
  };
  check_all({.tolerance = 1e-9}, "solve", f, {0.1, 2, 1, 1, 1, 0.5, 3, 1, 2, 1, -2, 0.5});
}

TEST_CASE("rk4 is of order 4, exactly differentiated", "[solvers]") {
  const auto f = [](D y, I n) { return solvers::rk4(decay, y, 0.0, 1.0, n, 1.0); };
  const auto run = eager(f);
  const auto error = [&](std::int64_t n) { return std::abs(run(1.0, n) - std::exp(-1.0)); };
  CHECK(error(10) / error(20) == Approx(16).epsilon(0.1));
  CHECK(error(20) / error(40) == Approx(16).epsilon(0.1));
  // One step is the polynomial 1 - h + h^2 / 2 - h^3 / 6 + h^4 / 24, times y.
  CHECK(eager(grad<0>(f))(1.0, 1) == Approx(1 - 1 + 1 / 2. - 1 / 6. + 1 / 24.).epsilon(1e-14));

  const auto oscillator = [](A x) {
    const auto s = solvers::rk4(swing, {.loop = {.checkpoints = 5}}, Oscillator{x[0], 0.0}, x[2], x[3], 200,
                                x[1] * x[1]);
    return s.place;
  };
  const Vector x{1.5, 2.0, 0.25, 1.5};
  check_closed_form(value_and_gradients(oscillator), x, with_gradient_twice(oscillation(x)), 1e-7);
}

TEST_CASE("dormand_prince reaches its tolerance, also backward in time", "[solvers]") {
  const auto f = [](double tolerance) {
    return eager(
        sig<solvers::Integrated<double, std::int64_t, bool>(double, double)>([tolerance](D t0, D t1) {
          return solvers::dormand_prince(decay, {.relative = tolerance, .absolute = tolerance}, exp(-t0), t0,
                                         t1, 1.0);
        }));
  };
  std::int64_t steps = 0;
  for (const double tolerance : {1e-4, 1e-6, 1e-8, 1e-10}) {
    const auto forward = f(tolerance)(0.0, 4.0), backward = f(tolerance)(4.0, 0.0);
    CHECK(forward.finished);
    CHECK(std::abs(forward.y - std::exp(-4.0)) < 10 * tolerance);
    CHECK(backward.y == Approx(1.0).epsilon(2000 * tolerance));
    CHECK(forward.steps > steps);
    steps = forward.steps;
  }
  const auto nowhere = f(1e-6)(2.0, 2.0);
  CHECK(nowhere.finished);
  CHECK(nowhere.y == Approx(std::exp(-2.0)).epsilon(1e-14));
}

TEST_CASE("dormand_prince: derivatives by state, arguments and both times", "[solvers]") {
  const auto f = [](A x) {
    return solvers::dormand_prince(swing, {.relative = 1e-9}, Oscillator{x[0], 0.0}, x[2], x[3], x[1] * x[1])
        .y.place;
  };
  const Vector x{1.5, 2.0, 0.25, 1.5};
  check_closed_form(value_and_gradients(f), x, with_gradient_twice(oscillation(x)), 1e-7);
  check_all({.without_unwind = false, .clang = false, .tolerance = 1e-7, .difference_tolerance = 1e-5},
            "second order", f, x);
}

TEST_CASE("states of several parts, and what f captures", "[solvers]") {
  // A number y' = -y, and a matrix that turns, X' = w R X with R = (0, -1; 1, 0): cos and sin of w t.
  using State = std::tuple<D, M>;
  const auto sine = [](D w, double t1, auto integrate) {
    const M one = fill(D(0.0), 2, 2).set(0, 0, 1.0).set(1, 1, 1.0);
    const auto rates = [w](D, State s) {
      const auto& [y, x] = s;
      const M turn = fill(D(0.0), 2, 2).set(0, 1, -w).set(1, 0, w);
      return State(-y, M(matmul(turn, x).datum()));
    };
    const State end = integrate(rates, State(1.0, one), 0.0, t1);
    return std::get<0>(end) * std::get<1>(end)(1, 0);
  };
  const std::function<D(A)> by_rk4 = [sine](A w) {
    return sine(w[0], 1.5, [](auto f, auto y, auto... t) { return solvers::rk4(f, y, t..., 200); });
  };
  const std::function<D(A)> by_dormand_prince = [sine](A w) {
    return sine(w[0], 1.5, [](auto f, auto y, auto... t) {
      return solvers::dormand_prince(f, {.relative = 1e-9, .loop = {.checkpoints = 4}}, y, t...).y;
    });
  };
  const double y = std::exp(-1.5), slope = y * 1.5 * std::cos(3.0);
  for (const auto& f : {by_rk4, by_dormand_prince}) {
    const auto all = value_and_gradients(f);
    for (const Vector& got :
         {eager(all)(Vector{2}), compile(all, {.target = Target::c, .opt = 0})(Vector{2})}) {
      CHECK(got[0] == Approx(y * std::sin(3.0)).epsilon(1e-7));
      CHECK(got[1] == Approx(slope).epsilon(1e-7));
      CHECK(got[2] == Approx(slope).epsilon(1e-7));
    }
  }
}

TEST_CASE("steps that are rejected leave no NaN in a derivative", "[solvers]") {
  // The first step, far too long, overflows: y' = -y^3, y = y0 / sqrt(1 + 2 y0^2 t).
  const auto f = [](D y) {
    return solvers::dormand_prince([](D, D v) { return -v * v * v; }, {.first_step = 1e80}, y, 0.0, 1e80).y;
  };
  const auto g = [](D y) {
    return solvers::dormand_prince([](D, D v) { return -v * v * v; }, {.first_step = 1.0}, y * 1e3, 0.0, 1.0)
        .y;
  };
  CHECK(std::isfinite(eager(grad(f))(1.0)));
  CHECK(eager(g)(1.0) == Approx(1 / std::sqrt(1e-6 + 2)).epsilon(1e-4));
  CHECK(compile(grad(g), {.target = Target::c, .opt = 0})(1.0) ==
        Approx(1e-6 / std::pow(1e-6 + 2, 1.5)).margin(1e-8));
}

TEST_CASE("an integration that cannot finish says so", "[solvers]") {
  const auto few = [](D y) { return solvers::dormand_prince(decay, {.max_steps = 3}, y, 0.0, 100.0, 1.0); };
  CHECK_FALSE(eager(few)(1.0).finished);
  CHECK(eager(few)(1.0).steps + eager(few)(1.0).rejected == 3);
  // y' = y^2 has a pole at 1.
  const auto pole = [](D y) { return solvers::dormand_prince([](D, D v) { return v * v; }, y, 0.0, 2.0); };
  const auto r = compile(pole, {.target = Target::c, .opt = 0})(1.0);
  CHECK_FALSE(r.finished);
  CHECK(r.steps + r.rejected <= 10'000);
  const auto stiff = [](D y) { return solvers::tr_bdf2([](D, D v) { return v * v; }, y, 0.0, 2.0); };
  CHECK_FALSE(compile(stiff, {.target = Target::c, .opt = 0})(1.0).finished);
}

TEST_CASE("times that turn back are not reached", "[solvers]") {
  const auto states = [](D y, A times) { return solvers::dormand_prince_at(decay, y, times, 1.0); };
  const auto test = [&](const auto& run) {
    const auto r = run(states)(1.0, Vector{0, 2, 1});
    CHECK_FALSE(r.finished);
    CHECK(r.y[0] == 1);
    CHECK(std::isnan(r.y[1]));
    const auto sorted = run(states)(1.0, Vector{2, 1, 0});
    CHECK(sorted.finished);
    CHECK(sorted.y[2] == Approx(std::exp(2.0)).epsilon(1e-5));
    CHECK(run(states)(1.0, Vector{3}).finished);
  };
  test([](auto g) { return eager(g); });
  test([](auto g) { return compile(g, {.target = Target::c, .opt = 0}); });
}

TEST_CASE("dormand_prince_at interpolates between its steps", "[solvers]") {
  const auto states = [](A y, A times, D w) {
    return solvers::dormand_prince_at(swing_array, {.relative = 1e-8}, y, times, w * w);
  };
  const Vector y{1, 0}, times{0, 0.1, 0.5, 0.51, 2, 3};
  const auto r = eager(states)(y, times, 2.0);
  REQUIRE(r.finished);
  REQUIRE(r.y.shape == std::vector<std::int64_t>{6, 2});
  for (std::size_t i = 0; i < times.size(); ++i) {
    CHECK(r.y[2 * i] == Approx(std::cos(2 * times[i])).margin(1e-7));
    CHECK(r.y[2 * i + 1] == Approx(-2 * std::sin(2 * times[i])).margin(2e-7));
  }
  // The sum of all y by w: -t sin(w t) and -sin(w t) - w t cos(w t).
  const auto total = [states](A y0, A t, D w) { return sum(states(y0, t, w).y); };
  double slope = 0;
  for (const double t : times) slope += -t * std::sin(2 * t) - std::sin(2 * t) - 2 * t * std::cos(2 * t);
  const auto reverse = grad<2>(total);
  const auto forward = grad<2, mode::forward>(total);
  CHECK(eager(reverse)(y, times, 2.0) == Approx(slope).epsilon(1e-6));
  CHECK(eager(forward)(y, times, 2.0) == Approx(slope).epsilon(1e-6));
  CHECK(compile(reverse, {.target = Target::c, .opt = 0})(y, times, 2.0) == Approx(slope).epsilon(1e-6));

  // A number: an array. By the time asked for, the derivative is that of the solution. Descending times.
  const auto numbers = [](D y0, A t) { return solvers::dormand_prince_at(decay, y0, t, 1.0).y; };
  const Vector back{2, 1.5, 0};
  CHECK(eager(numbers)(std::exp(-2.0), back)[1] == Approx(std::exp(-1.5)).epsilon(1e-5));
  CHECK(eager(numbers)(std::exp(-2.0), back)[2] == Approx(1.0).epsilon(1e-5));
  const auto middle = [numbers](D y0, A t) { return numbers(y0, t)[1]; };
  const auto [by_y, by_t] = eager(grad(middle))(1.0, Vector{0, 0.7, 3});
  CHECK(by_y == Approx(std::exp(-0.7)).epsilon(1e-5));
  CHECK(by_t[1] == Approx(-std::exp(-0.7)).epsilon(1e-4));
  const auto unfinished = [](D y0, A t) {
    return solvers::dormand_prince_at(decay, {.first_step = 0.01, .max_steps = 1}, y0, t, 1.0).y;
  };
  CHECK(std::isnan(eager(unfinished)(1.0, Vector{0, 1})[1]));
}

TEST_CASE("integrators and systems of floats", "[solvers]") {
  using F = Rep<float>;
  using FA = Rep<Array<float>>;
  using FM = Rep<Tensor<float, dyn, dyn>>;
  const auto swings = [](F, FA s, F k) { return s.set(0, s[1]).set(1, -k * s[0]); };
  // x cos(w t), and its derivatives by x, w and t.
  const double x = 1.5, w = 2, t = 1.25, c = std::cos(w * t), s = std::sin(w * t);
  const auto start = [](F v) { return fill(F(0.0), 2).set(0, v); };
  const auto check_oscillation = [&](const char* name, const std::function<F(F, F, F)>& place) {
    INFO(name);
    const auto test = [&](const auto& run) {
      const auto [y, slopes] = run(value_and_grad(place))(1.5F, 2.0F, 1.25F);
      CHECK(y == Approx(x * c).epsilon(2e-3));
      CHECK(std::get<0>(slopes) == Approx(c).epsilon(2e-3));
      CHECK(std::get<1>(slopes) == Approx(-x * t * s).epsilon(2e-3));
      CHECK(std::get<2>(slopes) == Approx(-x * w * s).epsilon(4e-3));
      const auto forward = run(grad<1, mode::forward>(place))(1.5F, 2.0F, 1.25F);
      CHECK(forward == Approx(-x * t * s).epsilon(2e-3));
    };
    test([](auto f) { return eager(f); });
    test([](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
    test([](auto f) { return compile(f, {.target = Target::cpp}); });
  };
  check_oscillation("rk4",
                    [=](F v, F k, F end) { return solvers::rk4(swings, start(v), 0.0, end, 40, k * k)[0]; });
  check_oscillation("dormand_prince", [=](F v, F k, F end) {
    return solvers::dormand_prince(swings, start(v), 0.0, end, k * k).y[0];
  });
  check_oscillation("odeint_adjoint", [=](F v, F k, F end) {
    return solvers::odeint_adjoint(swings, {.relative = 1e-5}, start(v), 0.0, end, k * k).y[0];
  });
  check_oscillation("tr_bdf2", [=](F v, F k, F end) {
    return solvers::tr_bdf2(swings, {.relative = 1e-5, .max_steps = 2000}, start(v), 0.0, end, k * k).y[0];
  });
  check_oscillation("dormand_prince_at", [=](F v, F k, F end) {
    return solvers::dormand_prince_at(swings, start(v), fill(F(0.0), 2).set(1, end), k * k).y(1, 0);
  });
  const auto finished = [](F y, F end) {
    return solvers::dormand_prince([](F, F v) { return -v; }, y, 0.0, end);
  };
  const auto end = compile(finished, {.target = Target::c})(1.0F, 4.0F);
  CHECK(end.finished);
  CHECK(end.y == Approx(std::exp(-4.0)).epsilon(1e-2));
  CHECK(end.steps < 60);
  const auto system = [](FM a, FA b) {
    const FA y = solvers::solve(a, b);
    return y[0] * y[1] + y[2];
  };
  const TensorValue<float> a({0, 2, 1, 1, 1, 1, 4, 1, 2}, {3, 3});
  const std::vector<float> b{7, 6, 12};
  CHECK(eager(system)(a, b) == Approx(5).epsilon(1e-5));
  const auto [by_a, by_b] = compile(grad(system), {.target = Target::cpp})(a, b);
  const auto of_doubles = [](M m, A v) {
    const A y = solvers::solve(m, v);
    return y[0] * y[1] + y[2];
  };
  const auto [exact_a, exact_b] =
      eager(grad(of_doubles))(TensorValue<double>({0, 2, 1, 1, 1, 1, 4, 1, 2}, {3, 3}), Vector{7, 6, 12});
  for (std::size_t i = 0; i < 9; ++i)
    CHECK(by_a.data[i] == Approx(exact_a.data[i]).epsilon(1e-4).margin(1e-5));
  for (std::size_t i = 0; i < 3; ++i) CHECK(by_b[i] == Approx(exact_b[i]).epsilon(1e-4).margin(1e-5));
}

TEST_CASE("what integrators refuse", "[solvers][errors]") {
  check_refused([](D y, I n) { return solvers::rk4(decay, y, 0.0, 1.0, n, y); },
                "rk4: expected one step or more, got 0", 1.0, std::int64_t{0});
  check_refused([](A y) { return solvers::rk4([](D, A v) { return v; }, y, 0.0, 1.0, 3); },
                "rk4: expected a state with at least one number, got an empty one", Vector{});
  check_refused([](A y) { return solvers::dormand_prince([](D, A v) { return v; }, y, 0.0, 1.0).y; },
                "dormand_prince: expected a state with at least one number, got an empty one", Vector{});
  using Mixed = std::tuple<D, Rep<float>>;
  check_refused(
      [](D x, Rep<float> y) {
        return std::get<0>(solvers::dormand_prince([](D, Mixed v) { return v; }, Mixed(x, y), 0.0, 1.0).y);
      },
      "dormand_prince: expected a state of doubles or one of floats, got a component of type f32", 1.0, 1.0F);
  check_refused([](D y, A t) { return solvers::dormand_prince_at(decay, y, t, y).y; },
                "dormand_prince_at: expected one time or more, got none", 1.0, Vector{});
  check_refused([](M a, A b) { return solvers::solve(a, b); },
                "solve: expected a square matrix and a vector of as many elements as it has rows",
                TensorValue<double>({1, 2, 3, 4, 5, 6}, {2, 3}), Vector{1, 2});
}
