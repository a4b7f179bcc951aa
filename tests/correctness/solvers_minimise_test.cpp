// Roots, least squares and minima: known solutions, derivatives to the second order against closed forms,
// differences and each other; what does not converge, and what is refused.
#include "solver_checks.hpp"

using namespace lantern;
using namespace lantern::test;
using namespace lantern::test::solver_checks;

namespace {

D square_less(D x, D s) { return x * x - s; }
/// The real root of x^3 - 2 x - 5, Wallis's: 2.0945514815423265...
D wallis(D x) { return x * x * x - 2.0 * x - 5.0; }
/// x_i exp(x_i) + mean of x = a_i.
A coupled(A x, A a) { return x * exp(x) + sum(x) / cast<double>(x.size()) - a; }
D rosenbrock(A x, D a) {
  const D u = a - x[0], v = x[1] - x[0] * x[0];
  return u * u + 100.0 * v * v;
}
/// Deviations of p[0] exp(p[1] t) from y.
A exponential(A p, A t, A y) { return p[0] * exp(p[1] * t) - y; }

template <class Test>
void eagerly_and_by_tcc(const Test& test) {
  test([](auto f) { return eager(f); });
  test([](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
}

const Vector times{0, 0.5, 1, 1.5, 2}, seen{2.1, 1.5, 0.9, 0.7, 0.55};

}  // namespace

TEST_CASE("roots, least squares and minima of floats", "[solvers]") {
  using F = Rep<float>;
  using FA = Rep<Array<float>>;
  const auto test = [](const auto& run) {
    const auto square = [](F x, F a) { return x * x - a; };
    const std::pair<const char*, std::function<F(F)>> roots[] = {
        {"newton", [&](F a) { return solvers::newton(square, F(1.0), a).x; }},
        {"bisect", [&](F a) { return solvers::bisect(square, F(0.0), 5.0, a).x; }},
        {"brent", [&](F a) { return solvers::brent(square, 0.0, F(5.0), a).x; }}};
    for (const auto& [name, root] : roots) {
      INFO(name);
      CHECK(run(root)(2.0F) == Approx(std::sqrt(2.0)).epsilon(2e-6));
      CHECK(run(grad(root))(2.0F) == Approx(0.5 / std::sqrt(2.0)).epsilon(1e-5));
      CHECK(run(grad<mode::forward>(root))(2.0F) == Approx(0.5 / std::sqrt(2.0)).epsilon(1e-5));
    }
    CHECK(run([&](F a) { return solvers::newton(square, F(1.0), a); })(2.0F).converged);
    CHECK(run([&](F a) { return solvers::brent(square, F(0.0), F(5.0), a); })(2.0F).converged);
    // x_i^3 + mean of x = a_i, whose solution for a = (2, 2) is (1, 1): (3 I + (1/2) 1 1^T) dx = da.
    const auto coupled_root = [](FA a) {
      const auto f = [](FA x, FA b) { return x * x * x + sum(x) / 2.0 - b; };
      const auto r = solvers::newton(f, fill(F(1.5), a.size()), a);
      return select(r.converged, r.x[0], F(0.0));
    };
    const std::vector<float> a{2, 2};
    CHECK(run(coupled_root)(a) == Approx(1).epsilon(1e-5));
    const auto slopes = run(grad(coupled_root))(a);
    CHECK(slopes[0] == Approx(3.5 / 12).epsilon(1e-4));
    CHECK(slopes[1] == Approx(-0.5 / 12).epsilon(1e-4));
    const auto line = [](FA p, FA y) { return y - p[0] - p[1] * fill(F(0.0), 3).set(1, 1.0).set(2, 2.0); };
    const std::vector<float> y{1, 3, 5.5};
    const auto by_gauss = [&](FA v) { return solvers::gauss_newton(line, fill(F(0.0), 2), v); };
    const auto by_levenberg = [&](FA v) { return solvers::levenberg_marquardt(line, fill(F(0.0), 2), v); };
    CHECK(run(by_gauss)(y).converged);
    CHECK(run(by_levenberg)(y).converged);
    CHECK(run(by_gauss)(y).x[1] == Approx(2.25).epsilon(1e-4));
    CHECK(run(by_levenberg)(y).x[1] == Approx(2.25).epsilon(1e-4));
    CHECK(run(by_gauss)(y).cost == Approx(0.5 * (1. / 96 * 4)).epsilon(2e-3));
    const auto slope = [&](FA v) { return by_levenberg(v).x[1]; };
    CHECK(run(grad(slope))(y)[0] == Approx(-0.5).epsilon(1e-3));
    // (x0 - a)^2 + 3 (x1 - x0)^2, smallest at (a, a).
    const auto bowl = [](FA x, F v) {
      const F u = x[0] - v, w = x[1] - x[0];
      return u * u + 3.0 * w * w;
    };
    const auto by_lbfgs = [&](F v) { return solvers::lbfgs(bowl, fill(F(0.0), 2), v); };
    const auto by_newton = [&](F v) { return solvers::newton_cg(bowl, fill(F(0.0), 2), v); };
    CHECK(run(by_lbfgs)(2.0F).converged);
    CHECK(run(by_newton)(2.0F).converged);
    CHECK(run(by_lbfgs)(2.0F).x[1] == Approx(2).epsilon(1e-3));
    CHECK(run(by_newton)(2.0F).x[1] == Approx(2).epsilon(1e-3));
    const auto second = [&](F v) { return by_lbfgs(v).x[1]; };
    CHECK(run(grad(second))(2.0F) == Approx(1).epsilon(1e-3));
  };
  eagerly_and_by_tcc(test);
}

TEST_CASE("roots of a number", "[solvers]") {
  const std::pair<const char*, std::function<D(D)>> solvers_of_one[] = {
      {"newton", [](D a) { return solvers::newton(square_less, 1.0, a).x; }},
      {"bisect", [](D a) { return solvers::bisect(square_less, 0.0, 5.0, a).x; }},
      {"brent", [](D a) { return solvers::brent(square_less, 0.0, 5.0, a).x; }}};
  for (const auto& [name, root] : solvers_of_one) {
    INFO(name);
    eagerly_and_by_tcc([&, f = root](const auto& run) {
      CHECK(run(f)(2.0) == Approx(std::sqrt(2.0)).epsilon(1e-12));
      CHECK(run(std::function<D(D)>(grad(f)))(2.0) == Approx(0.5 / std::sqrt(2.0)).epsilon(1e-11));
      CHECK(run(std::function<D(D)>(grad<mode::forward>(f)))(2.0) ==
            Approx(0.5 / std::sqrt(2.0)).epsilon(1e-11));
      CHECK(run(std::function<D(D)>(grad(grad(f))))(2.0) == Approx(-0.125 / std::sqrt(2.0)).epsilon(1e-10));
    });
  }
  // By Clang too, and in an expression, to third order.
  check_all(
      {.order = 3, .without_unwind = false, .tolerance = 1e-9}, "roots in one another",
      [](D a) {
        const D x = solvers::newton(square_less, 1.0, a).x;
        return x * solvers::brent([](D y, D s, D t) { return y * exp(y) - s * t; }, 0.0, 5.0, x, a).x;
      },
      1.7);
}

TEST_CASE("roots that are hard to find", "[solvers]") {
  const auto newton = [](D start) { return solvers::newton(wallis, start); };
  const auto brent = [](D lo, D hi) { return solvers::brent(wallis, lo, hi); };
  const auto bisect = [](D lo, D hi) { return solvers::bisect(wallis, lo, hi); };
  const double root = 2.0945514815423265;
  eagerly_and_by_tcc([&](const auto& run) {
    // From -0.5, undamped, it would jump about.
    CHECK(run(newton)(2.0).x == Approx(root).epsilon(1e-14));
    CHECK(run(newton)(2.0).iterations < 8);
    CHECK(run(brent)(-10.0, 10.0).x == Approx(root).epsilon(1e-11));
    CHECK(run(brent)(-10.0, 10.0).iterations < 25);
    CHECK(run(bisect)(-10.0, 10.0).x == Approx(root).epsilon(1e-11));
    CHECK(run(bisect)(10.0, -10.0).x == Approx(root).epsilon(1e-11));
    CHECK(run(bisect)(-10.0, 10.0).converged);
  });
  // The arc tangent: undamped, Newton's steps from 3 grow without end.
  const auto damped = [](D start) { return solvers::newton([](D x) { return atan(x); }, start); };
  CHECK(std::abs(eager(damped)(3.0).x) < 1e-12);
  // A root at an end of the bracket.
  const auto at_end = [](D lo, D hi) { return solvers::bisect([](D x) { return x - x * x; }, lo, hi).x; };
  CHECK(eager(at_end)(1.0, 3.0) == 1.0);
  CHECK(eager(at_end)(0.5, 1.0) == 1.0);
  const auto brent_at_end = [](D lo, D hi) {
    return solvers::brent([](D x) { return x - x * x; }, lo, hi).x;
  };
  CHECK(eager(brent_at_end)(1.0, 3.0) == 1.0);
  CHECK(eager(brent_at_end)(0.5, 1.0) == 1.0);
}

TEST_CASE("what has no root does not converge", "[solvers]") {
  const auto none = [](D start) { return solvers::newton([](D x) { return x * x + 1.0; }, start); };
  CHECK_FALSE(eager(none)(0.7).converged);
  CHECK(eager(none)(0.7).iterations <= 100);
  CHECK_FALSE(compile(none, {.target = Target::c, .opt = 0})(0.0).converged);
  const auto singular = [](A x) { return solvers::newton([](A y) { return 0.0 * y + 1.0; }, x).converged; };
  CHECK_FALSE(eager(singular)(Vector{1, 2}));
  const auto few = [](D lo, D hi) { return solvers::brent(wallis, {.iterations = 3}, lo, hi); };
  CHECK_FALSE(eager(few)(0.0, 10.0).converged);
  CHECK(eager(few)(0.0, 10.0).iterations == 3);
}

TEST_CASE("roots of a vector", "[solvers]") {
  const auto f = [](A a) {
    const A x = solvers::newton(coupled, zeros_like(a), a).x;
    return sum(x * x * x) + x[0];
  };
  check_all({.without_unwind = false, .tolerance = 1e-9}, "coupled", f, {1.0, 2.0, 3.0});
  // The linear equation C x = b: dx/db = C^-1.
  const auto linear = [](M c, A b) {
    return solvers::newton([](A x, M m, A y) { return as_array(matmul(m, x)) - y; }, zeros_like(b), c, b)
        .x[0];
  };
  const auto [by_c, by_b] = eager(grad(linear))(TensorValue<double>({2, 1, 1, 3}, {2, 2}), Vector{4, 7});
  CHECK(by_b[0] == Approx(0.6));
  CHECK(by_b[1] == Approx(-0.2));
  CHECK(by_c[1] == Approx(-0.6 * 2));  // - (C^-1)_00 x_1, x = (1, 2)
}

TEST_CASE("least squares", "[solvers]") {
  const auto gauss = [](A p, A y, A t) { return solvers::gauss_newton(exponential, p, t, y); };
  const auto damped = [](A p, A y, A t) { return solvers::levenberg_marquardt(exponential, p, t, y); };
  const auto test = [&](const auto& f, const Vector& start) {
    eagerly_and_by_tcc([&](const auto& run) {
      const auto fit = run(f)(start, seen, times);
      CHECK(fit.converged);
      CHECK(fit.x[0] == Approx(2.099787687785556).epsilon(1e-8));
      CHECK(fit.x[1] == Approx(-0.7368113209851489).epsilon(1e-8));
      CHECK(fit.cost == Approx(0.009022725529969522).epsilon(1e-10));
      // At a minimum, the derivative of the cost by y_i is that of r_i^2 / 2: what is left over, with its
      // sign.
      const auto cost = [f](A y, A p, A t) { return f(p, y, t).cost; };
      const Vector slope = run(grad<0>(cost))(seen, start, times);
      for (std::size_t i = 0; i < seen.size(); ++i)
        CHECK(slope[i] == Approx(seen[i] - fit.x[0] * std::exp(fit.x[1] * times[i])).margin(1e-8));
    });
  };
  test(gauss, {1, 0});
  test(damped, {1, 0});
  const Vector far{0.1, 3.0};
  CHECK(eager(damped)(far, seen, times).x[0] == Approx(2.099787687785556).epsilon(1e-8));
  CHECK_FALSE(eager([](A p, A y, A t) {
    return solvers::levenberg_marquardt(exponential, {.iterations = 2}, p, t, y).converged;
  })(far, seen, times));
}

TEST_CASE("the uncertainty of a fit", "[solvers]") {
  // The line a + b t: the textbook's closed forms.
  const auto line = [](A p, A y, A t) { return p[0] + p[1] * t - y; };
  const Vector t{0, 1, 2, 4}, y{1, 2.5, 2, 5};
  const double n = 4, st = 7, stt = 21, sy = 10.5, sty = 26.5, det = n * stt - st * st;
  const double b = (n * sty - st * sy) / det, a = (sy - b * st) / n;
  double squares = 0;
  for (std::size_t i = 0; i < t.size(); ++i) squares += std::pow(y[i] - a - b * t[i], 2);
  const double variance = squares / 2;
  eagerly_and_by_tcc([&](const auto& run) {
    const auto check = [&](const auto& solver) {
      const auto fit = run(solver)(Vector{0, 0}, y, t);
      CHECK(fit.degrees_of_freedom == 2);
      CHECK(fit.residual_variance == Approx(variance));
      CHECK(fit.covariance.data[0] == Approx(variance * stt / det));
      CHECK(fit.covariance.data[1] == Approx(-variance * st / det));
      CHECK(fit.covariance.data[2] == Approx(-variance * st / det));
      CHECK(fit.covariance.data[3] == Approx(variance * n / det));
      CHECK(fit.standard_errors[0] == Approx(std::sqrt(variance * stt / det)));
      CHECK(fit.standard_errors[1] == Approx(std::sqrt(variance * n / det)));
    };
    check([line](A p, A v, A s) { return solvers::gauss_newton(line, p, v, s); });
    check([line](A p, A v, A s) { return solvers::levenberg_marquardt(line, p, v, s); });
    // SciPy 1.17.1: curve_fit(lambda t, a, b: a * exp(b * t), times, seen).
    const auto fit = run([](A p, A v, A s) { return solvers::gauss_newton(exponential, p, s, v); })(Vector{1, 0}, seen, times);
    CHECK(fit.standard_errors[0] == Approx(0.07098078529372828).epsilon(1e-6));
    CHECK(fit.standard_errors[1] == Approx(0.05150657867571509).epsilon(1e-6));
    // As many residuals as unknowns leave no variance, one unknown has a number.
    const auto exact = run([](A p, A v, A s) { return solvers::gauss_newton(exponential, p, s, v); })(
        Vector{1, 0}, Vector{2, 1}, Vector{0, 1});
    CHECK(exact.degrees_of_freedom == 0);
    CHECK(std::isnan(exact.residual_variance));
    const auto mean = run([](A v) { return solvers::gauss_newton([](D m, A w) { return w - m; }, 0.0, v); })(Vector{1, 2, 6, 7});
    CHECK(mean.standard_errors == Approx(std::sqrt(26.0 / 3 / 4)));
  });
  const auto error = [](A v) {
    A s = fill(D(0.0), 5);
    for (std::size_t i = 0; i < times.size(); ++i) s = s.set(static_cast<std::int64_t>(i), times[i]);
    return solvers::gauss_newton(exponential, list({1.0, 0.0}), s, v).standard_errors[1];
  };
  check_all({.order = 1, .without_unwind = false, .clang = false, .tolerance = 1e-6, .difference_tolerance = 1e-5},
            "standard_errors", error, seen);
}

TEST_CASE("derivatives of a fit by its data", "[solvers]") {
  const auto gauss = [](A y) {
    A t = fill(D(0.0), 5);
    for (std::size_t i = 0; i < times.size(); ++i) t = t.set(static_cast<std::int64_t>(i), times[i]);
    const A x = solvers::gauss_newton(exponential, list({1.0, 0.0}), t, y).x;
    return x[0] * x[1];
  };
  check_all({.without_unwind = false, .clang = false, .tolerance = 1e-6, .difference_tolerance = 1e-6},
            "gauss_newton", gauss, seen);
  // By the start too, on which the solution does not depend, and the times.
  const auto damped = [](A y) {
    const A x = solvers::levenberg_marquardt(exponential, y.slice(3, 5), y.slice(5, 10), y.slice(0, 5)).x;
    return x[0] * x[1];
  };
  Vector data = seen;
  data.insert(data.end(), times.begin(), times.end());
  check_all({.order = 1, .without_unwind = false, .tolerance = 1e-6, .difference_tolerance = 1e-6},
            "levenberg_marquardt", damped, data);
  // One unknown: the mean of the data.
  const auto mean = [](A y) { return solvers::gauss_newton([](D m, A v) { return v - m; }, 0.0, y).x; };
  const Vector g = eager(grad(mean))(Vector{1, 2, 6, 7});
  CHECK(eager(mean)(Vector{1, 2, 6, 7}) == Approx(4));
  for (const double by_one : g) CHECK(by_one == Approx(0.25));
}

TEST_CASE("minima", "[solvers]") {
  const auto quasi = [](A x, D a) { return solvers::lbfgs(rosenbrock, x, a); };
  const auto newton = [](A x, D a) { return solvers::newton_cg(rosenbrock, x, a); };
  const auto test = [](const auto& f, std::int64_t most) {
    const Vector start{-1.2, 1};
    eagerly_and_by_tcc([&](const auto& run) {
      const auto least = run(f)(start, 1.5);
      CHECK(least.converged);
      CHECK(least.iterations < most);
      CHECK(least.x[0] == Approx(1.5).epsilon(1e-7));
      CHECK(least.x[1] == Approx(2.25).epsilon(1e-7));
      CHECK(least.value < 1e-12);
      // x_1 = a^2.
      const auto second = [f](D a, A x) { return f(x, a).x[1]; };
      CHECK(run(grad<0>(second))(1.5, start) == Approx(3).epsilon(1e-6));
      CHECK(run(grad<0, mode::forward>(second))(1.5, start) == Approx(3).epsilon(1e-6));
      CHECK(run(grad<0>(grad<0>(second)))(1.5, start) == Approx(2).epsilon(1e-5));
    });
    const auto by_clang = [f](D a, A x) {
      return value_and_grad<0>([f](D b, A z) { return f(z, b).x[1]; })(a, x);
    };
    const auto [x1, slope] = compile(by_clang, {.target = Target::cpp})(1.5, start);
    CHECK(x1 == Approx(2.25).epsilon(1e-7));
    CHECK(slope == Approx(3).epsilon(1e-6));
  };
  test(quasi, 80);
  test(newton, 100);
}

TEST_CASE("a minimum in many dimensions", "[solvers]") {
  // A chain: sum of cosh(x_i) + (x_i - x_{i-1})^2 / 2 - b_i x_i. Its Hessian has 1 to 5 times cosh as
  // eigenvalues.
  const auto chain = [](A x, A b) {
    const auto n = x.size();
    const D links = FOR(1, n, D(0.0), [&](auto i, D s) {
      const D d = x[i] - x[i - 1];
      return s + 0.5 * d * d;
    });
    return sum(exp(x) + exp(-x)) / 2.0 + links - dot(x, b);
  };
  const auto quasi = [chain](A b) { return solvers::lbfgs(chain, {.tolerance = 1e-10}, zeros_like(b), b); };
  const auto newton = [chain](A b) {
    return solvers::newton_cg(chain, {.tolerance = 1e-10}, zeros_like(b), b);
  };
  Vector b(60);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::sin(0.7 * static_cast<double>(i));
  const auto one = eager(quasi)(b);
  const auto other = compile(newton, {.target = Target::c, .opt = 0})(b);
  CHECK(one.converged);
  CHECK(other.converged);
  for (std::size_t i = 0; i < b.size(); ++i) CHECK(one.x[i] == Approx(other.x[i]).margin(1e-8));
  // The value's derivative by b is -x.
  const auto value = [quasi](A v) { return quasi(v).value; };
  const Vector slope = compile(grad(value), {.target = Target::c, .opt = 0})(b);
  for (std::size_t i = 0; i < b.size(); ++i) CHECK(slope[i] == Approx(-one.x[i]).margin(1e-8));
  const auto f = [quasi](A v) {
    const A x = quasi(v).x;
    return x[0] * x[1] + x[2];
  };
  check_all({.without_unwind = false, .clang = false, .tolerance = 1e-6, .difference_tolerance = 1e-5},
            "chain", f, {0.5, -1.0, 2.0, 0.3});
}

TEST_CASE("what has no minimum does not converge", "[solvers]") {
  const auto endless = [](D x) { return solvers::lbfgs([](D y) { return -y; }, x); };
  CHECK_FALSE(eager(endless)(1.0).converged);
  const auto linear = [](D x) { return solvers::newton_cg([](D y) { return -y; }, {.iterations = 5}, x); };
  CHECK_FALSE(eager(linear)(1.0).converged);
  const auto few = [](A x, D a) { return solvers::lbfgs(rosenbrock, {.iterations = 4}, x, a); };
  CHECK_FALSE(eager(few)(Vector{-1.2, 1}, 1.0).converged);
  CHECK(eager(few)(Vector{-1.2, 1}, 1.0).iterations == 4);
  // From where f is not convex.
  const auto wave = [](D x) { return solvers::newton_cg([](D y) { return cos(y); }, x); };
  CHECK(std::cos(eager(wave)(0.3).x) == Approx(-1));
}

TEST_CASE("what searches refuse", "[solvers][errors]") {
  check_refused(
      [](D hi) { return solvers::brent([](D x) { return x * x + 1.0; }, 0.0, hi).x; },
      "brent: expected f to have opposite signs at lo and hi: choose another bracket, or use newton", 2.0);
  check_refused([](D hi) { return solvers::bisect([](D x) { return x * x + 1.0; }, 0.0, hi).x; },
                "bisect: expected f to have opposite signs at lo and hi", 2.0);
  check_refused([](A x) { return solvers::newton([](A y) { return y; }, x).x; },
                "newton: expected the unknown to have elements, got an empty vector", Vector{});
  check_refused([](A x) { return solvers::newton([](A y) { return sum(y); }, x).x; },
                "newton: expected f to give a value of the unknown's type", Vector{1, 2});
  check_refused([](A x) { return solvers::newton([](A y) { return y.slice(0, 1); }, x).x; },
                "newton: expected f to give as many numbers as the unknown has", Vector{1, 2});
  check_refused([](A x) { return solvers::lbfgs([](A y) { return y; }, x).converged; },
                "lbfgs: expected f to give a number, f64, got f64[", Vector{1, 2});
  check_refused([](A x) { return solvers::gauss_newton([](A y) { return sum(y); }, x).converged; },
                "gauss_newton: expected f to give a vector of residuals, got f64", Vector{1, 2});
  const auto captures = [](D a) { return solvers::newton([=](D x) { return x * x - a; }, 1.0).x; };
  const std::string captured = "newton: the function captures a value that is being differentiated";
  CHECK(error_of([&] { eager(grad(captures))(2.0); }).find(captured) != std::string::npos);
  CHECK(error_of([&] { compile(grad(captures), {.target = Target::c, .opt = 0}); }).find(captured) !=
        std::string::npos);
}
