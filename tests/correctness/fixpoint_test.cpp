// fixpoint: derivatives of solutions, against closed forms, unrolled loops and differences; memory; what is
// refused.
#include <fmt/format.h>

#include <thread>

#include "agree.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

/// x = cos(a x) / 2 + b.
D step(D x, D a, D b) { return 0.5 * cos(a * x) + b; }
D solution(D a, D b) { return fixpoint(step, 0.3, a, b); }
D unrolled(D a, D b) {
  return FOR(0, 80, D(0.3), [&](I, D x) { return step(x, a, b); });
}

/// Heron's iteration: its derivative by x vanishes at the solution.
D root(D a) {
  return fixpoint([](D x, D s) { return 0.5 * (x + s / x); }, 1.0, a);
}

/// x_i = sin(x_{i+1}) / 3 + a_i, around a ring.
A ring(A x, A a) {
  return FOR(0, x.size(), a, [&](I i, A y) { return y.set(i, a[i] + sin(x[(i + 1) % x.size()]) / 3.0); });
}
D ring_norm(A a) {
  const A x = fixpoint(ring, a, a);
  return sum(x * x);
}

template <class T>
struct Pair {
  T a, b;
};
using P = Pair<D>;

template <class F, class... T>
std::pair<double, std::int64_t> in_new_thread(const F& f, T... arguments) {
  std::pair<double, std::int64_t> result;
  std::thread([&] {
    result.first = f(arguments...);
    result.second = driver::workspace_bytes();
  }).join();
  return result;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("derivatives of a solution", "[fixpoint]") {
  check_all({.order = 3}, "two arguments", solution, 0.7, 0.4);
  check_all("a root", root, 2.0);
  check_all(
      "inside an expression", [](D a) { return root(a) * solution(a, root(a)); }, 0.9);
  check_all("an array", ring_norm, {0.5, -1.5, 2.0});
  check_all(
      "a struct",
      [](D a) {
        const P p = fixpoint([](P x, D s) { return P{cos(x.b) * s, 0.3 * x.a}; }, P{0.1, 0.2}, a);
        return p.a * p.b;
      },
      0.8);
  check_all(
      "in one another",
      [](D a) {
        return fixpoint(
            [](D x, D s) {
              return 0.5 * fixpoint([](D y, D c, D t) { return 0.3 * cos(y * c) + t; }, 0.0, x, s);
            },
            0.1, a);
      },
      0.7);
}

TEST_CASE("a solution in float", "[fixpoint]") {
  check_all(
      "float",
      [](Rep<float> a) {
        return fixpoint([](Rep<float> x, Rep<float> s) { return 0.5 * cos(s * x); }, 0.3F, a) * a;
      },
      0.8F);
}

TEST_CASE("closed forms of a solution's derivatives", "[fixpoint]") {
  const double a = 2.0;
  const auto test = [&](const auto& run) {
    CHECK(run(root)(a) == Approx(std::sqrt(a)).epsilon(1e-14));
    CHECK(run(grad(root))(a) == Approx(0.5 / std::sqrt(a)).epsilon(1e-12));
    CHECK(run(grad<mode::forward>(root))(a) == Approx(0.5 / std::sqrt(a)).epsilon(1e-12));
    CHECK(run(grad(grad(root)))(a) == Approx(-0.25 / (a * std::sqrt(a))).epsilon(1e-11));
    CHECK(run(hvp(root))(a, 1.0) == Approx(-0.25 / (a * std::sqrt(a))).epsilon(1e-11));
    // The solution of x = a x + b is b / (1 - a).
    const auto line = [](D s, D b) { return fixpoint([](D x, D m, D c) { return m * x + c; }, 0.0, s, b); };
    const auto [ds, db] = run(grad(line))(0.5, 3.0);
    CHECK(ds == Approx(12.0).epsilon(1e-10));
    CHECK(db == Approx(2.0).epsilon(1e-10));
  };
  test([](auto f) { return eager(f); });
  test([](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
  test([](auto f) { return compile(f, {.target = Target::c, .opt = 3}); });
  test([](auto f) { return compile(f, {.target = Target::cpp, .opt = 3}); });
}

TEST_CASE("the derivative of the solution is that of many steps", "[fixpoint]") {
  const auto implicit = compile(value_and_grad(solution), {.target = Target::c});
  const auto explicitly = compile(value_and_grad(unrolled), {.target = Target::c});
  const auto [x, dx] = implicit(0.7, 0.4);
  const auto [y, dy] = explicitly(0.7, 0.4);
  CHECK(x == Approx(y).epsilon(1e-12));
  CHECK(std::get<0>(dx) == Approx(std::get<0>(dy)).epsilon(1e-10));
  CHECK(std::get<1>(dx) == Approx(std::get<1>(dy)).epsilon(1e-10));
}

TEST_CASE("fixed points in control flow", "[fixpoint]") {
  check_all(
      "IF and FOR",
      [](D a) {
        return FOR(0, 3, a, [&](I i, D s) {
          return IF(
              i == 1, [&] { return solution(s, a); }, [&] { return s * a; });
        });
      },
      0.7);
  const auto again = FUN<double(double, int64_t)>("again", [](auto self, D a, I n) {
    return IF(
        n == 0, [&] { return D(a); }, [&] { return solution(self(a, n - 1), a); });
  });
  check_all(
      "FUN", [again](D a) { return again(a, 2); }, 0.7);
  check_all(
      {.order = 1}, "checkpoint", [](D a) { return checkpoint(solution)(a, a) * a; }, 0.7);
  // The body chooses, and loops.
  check_all(
      "control flow in the map",
      [](D a) {
        return fixpoint(
            [](D x, D s) {
              return IF(
                  x > 10.0, [&] { return 0.1 * x; },
                  [&] { return FOR(0, 2, 0.2 * x + s, [&](I, D t) { return sin(t) + 0.1 * x; }); });
            },
            0.0, a);
      },
      0.7);
}

TEST_CASE("a fixed point captures what is not differentiated", "[fixpoint]") {
  // x = s^2 / (1 - data / 10) = 2 s^2, times a.
  const auto f = [](D a, A data) {
    return fixpoint([=](D x, D s) { return 0.1 * x * data[0] + s * s; }, 0.0, a) * a;
  };
  const std::vector<double> data{5.0};
  const auto test = [&](const auto& run) {
    CHECK(run(grad<0>(f))(3.0, data) == Approx(54.0));
    CHECK(run(grad<0>(grad<0>(f)))(3.0, data) == Approx(36.0));
    CHECK(run(grad<0>(grad<0>(grad<0>(f))))(3.0, data) == Approx(12.0));
    CHECK(run(grad<0, mode::forward>(grad<0>(f)))(3.0, data) == Approx(36.0));
  };
  test([](auto g) { return eager(g); });
  test([](auto g) { return compile(g, {.target = Target::c, .opt = 0}); });
  test([](auto g) { return compile(g, {.target = Target::c}); });
}

TEST_CASE("stop_gradient in a fixed point", "[fixpoint]") {
  const auto f = [](D a) {
    return fixpoint([](D x, D s) { return 0.5 * stop_gradient(s) * x + s; }, 0.0, a);
  };
  // x = s / (1 - s / 2); through the second s alone dx/ds = 1 / (1 - s / 2).
  CHECK(eager(grad(f))(0.5) == Approx(1 / 0.75));
  CHECK(compile(grad(f), {.target = Target::c})(0.5) == Approx(1 / 0.75));
}

TEST_CASE("memory does not grow with the iterations", "[fixpoint]") {
  // The rate of convergence is a: 0.5 takes about 40 applications, 0.999 about 25,000.
  const auto line = [](D s, D b) {
    return fixpoint([](D x, D m, D c) { return m * x + sin(c); }, {.iterations = 1'000'000}, 0.0, s, b);
  };
  const auto by_steps = [](D s, D b) {
    return WHILE(
        std::tuple(D(0.0), D(1.0)), [](D, D d) { return abs(d) > 1e-12; },
        [&](D x, D) { return std::tuple(s * x + sin(b), s * x + sin(b) - x); });
  };
  const auto memory = [](const auto& f, double rate) {
    const auto compiled =
        compile(sig<double(double, double)>([f](D s, D b) { return std::get<0>(grad(f)(s, b)); }),
                {.target = Target::c});
    return in_new_thread(compiled, rate, 0.5);
  };
  const auto solve = sig<double(double, double)>(line);
  const auto unroll =
      sig<double(double, double)>([by_steps](D s, D b) { return std::get<0>(by_steps(s, b)); });
  const auto [few, few_bytes] = memory(solve, 0.5);
  const auto [many, many_bytes] = memory(solve, 0.999);
  CHECK(few == Approx(std::sin(0.5) / 0.25).epsilon(1e-9));
  CHECK(many == Approx(std::sin(0.5) / 1e-6).epsilon(1e-7));
  CHECK(many_bytes == few_bytes);
  CHECK(memory(unroll, 0.999).second > 8 * 20'000);
  // Of the second derivative too: the equations of the derivatives are not unrolled either.
  const auto twice = [](D s, D b) {
    return std::get<0>(grad([](D m, D c) {
      return std::get<0>(grad([](D k, D d) {
        return fixpoint([](D x, D l, D t) { return l * x + sin(t); }, {.iterations = 1'000'000}, 0.0, k, d);
      })(m, c));
    })(s, b));
  };
  const auto second = compile(sig<double(double, double)>(twice), {.target = Target::c});
  const auto [slow, slow_bytes] = in_new_thread(second, 0.99, 0.5);
  CHECK(slow == Approx(2 * std::sin(0.5) / 1e-6).epsilon(1e-6));
  CHECK(slow_bytes == in_new_thread(second, 0.5, 0.5).second);
}

TEST_CASE("what a fixed point refuses", "[fixpoint][errors]") {
  const auto diverges = [](D a) {
    return fixpoint([](D x, D s) { return 2.0 * x + s; }, {.iterations = 50}, 1.0, a);
  };
  const auto diverges_silently = [](D a) {
    return fixpoint([](D x, D s) { return 2.0 * x + s; }, {.iterations = 50, .raise = false}, 1.0, a);
  };
  const auto captures = [](D a) { return fixpoint([=](D x) { return 0.5 * x + a; }, 1.0); };
  const auto grows = [](A a) { return sum(fixpoint([](A x, A b) { return concat(x, b); }, a, a)); };
  const auto diverged = [](const std::string& message) {
    INFO(message);
    CHECK(message.find("fixpoint_test.cpp:") != std::string::npos);
    CHECK(
        message.find(
            "fixpoint: expected the iteration to converge within 50 applications of f, got a step above the "
            "tolerance") != std::string::npos);
  };
  diverged(error_of([&] { eager(diverges)(1.0); }));
  diverged(error_of([&] { compile(diverges, {.target = Target::c})(1.0); }));
  diverged(error_of([&] { compile(grad(diverges), {.target = Target::c})(1.0); }));
  CHECK(std::isnan(eager(diverges_silently)(1.0)));
  CHECK(std::isnan(compile(diverges_silently, {.target = Target::c})(1.0)));
  const std::string captured = "fixpoint: the function captures a value that is being differentiated";
  CHECK(error_of([&] { eager(grad(captures))(1.0); }).find(captured) != std::string::npos);
  CHECK(error_of([&] { compile(grad(captures), {.target = Target::c}); }).find(captured) !=
        std::string::npos);
  const std::vector<double> x{1.0, 2.0};
  CHECK(error_of([&] {
          eager(grows)(x);
        }).find("fixpoint: expected f to give component 0 of x as f64[2], got f64[4]") != std::string::npos);
  CHECK(error_of([&] {
          compile(grows, {.target = Target::c})(x);
        }).find("fixpoint: expected f to give component 0 of x") != std::string::npos);
}
