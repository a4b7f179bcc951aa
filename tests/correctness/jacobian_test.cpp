// jacobian and hessian: shapes, modes, several arguments and results.
#include "agree.hpp"

using namespace lantern;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using Shape = std::vector<std::int64_t>;

/// Two results of three arguments, and the other way round.
A wide(A x) { return fill(x[0] * x[1], 2).set(1, sin(x[2]) * x[0]); }
A tall(A x) { return fill(x[0] * x[1], 3).set(1, sin(x[1])).set(2, x[0] * x[0]); }
std::vector<double> wide_at(const std::vector<double>& x) {
  return {x[1], x[0], 0, std::sin(x[2]), 0, std::cos(x[2]) * x[0]};
}
std::vector<double> tall_at(const std::vector<double>& x) {
  return {x[1], x[0], 0, std::cos(x[1]), 2 * x[0], 0};
}

template <class Test>
void by_all(Test test) {
  const auto named = [&](const char* name, auto run) {
    INFO(name);
    test(run);
  };
  named("eager", [](auto f) { return eager(f); });
  named("opt 0", [](auto f) { return compile(f, {.target = Target::c, .opt = 0}); });
  named("opt 3", [](auto f) { return compile(f, {.target = Target::c, .opt = 3}); });
  named("Clang", [](auto f) { return compile(f, {.target = Target::cpp, .opt = 3}); });
}

void check_vector(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-11).margin(1e-13));
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

TEST_CASE("a matrix from array to array, by columns, by rows and by shape", "[jacobian]") {
  const std::vector<double> x3{0.5, -1.5, 2.0}, x2{0.5, -1.5};
  by_all([&](auto run) {
    const auto test = [&](auto j, const std::vector<double>& x, const Shape& shape,
                          const std::vector<double>& expected) {
      const auto found = run(j)(x);
      CHECK(found.shape == shape);
      check_vector(found.data, expected);
    };
    test(jacobian(wide), x3, {2, 3}, wide_at(x3));
    test(jacobian<mode::forward>(wide), x3, {2, 3}, wide_at(x3));
    test(jacobian<mode::reverse>(wide), x3, {2, 3}, wide_at(x3));
    test(jacobian(tall), x2, {3, 2}, tall_at(x2));
    test(jacobian<mode::forward>(tall), x2, {3, 2}, tall_at(x2));
    test(jacobian<mode::reverse>(tall), x2, {3, 2}, tall_at(x2));
  });
}

TEST_CASE("the mode is that with fewer passes", "[jacobian]") {
  // How often the function runs: once for its shapes, and once for every pass.
  int runs = 0;
  const auto count = [&runs](const auto& f) { return [&runs, f](A x) { return ++runs, f(x); }; };
  const auto sizes = [](std::int64_t m) { return [m](A x) { return fill(sum(x), m); }; };
  const std::vector<double> x{1, 2, 3, 4, 5};
  eager(jacobian(count(sizes(2))))(x);
  CHECK(runs == 1 + 2);
  runs = 0;
  eager(jacobian(count(sizes(7))))(x);
  CHECK(runs == 1 + 5);
  runs = 0;
  eager(jacobian<mode::reverse>(count(sizes(7))))(x);
  CHECK(runs == 1 + 7);
}

TEST_CASE("scalars, several arguments and several results", "[jacobian]") {
  const auto f = [](A x, D s, I n) { return std::tuple(A(x * s * cast<double>(n)), sum(x * x) * s); };
  const std::vector<double> x{0.5, -1.5, 2.0};
  const double s = 3, squares = 0.25 + 2.25 + 4;
  by_all([&](auto run) {
    const auto test = [&](auto j) {
      const auto found = run(j)(x, s, 2);
      const auto& [of_array, of_scalar] = found;
      CHECK(std::get<0>(of_array).shape == Shape{3, 3});
      check_vector(std::get<0>(of_array).data, {6, 0, 0, 0, 6, 0, 0, 0, 6});
      check_vector(std::get<1>(of_array), {1, -3, 4});
      check_vector(std::get<0>(of_scalar), {3, -9, 12});
      CHECK(std::get<1>(of_scalar) == Approx(squares));
    };
    test(jacobian(f));
    test(jacobian<mode::forward>(f));
    test(jacobian<mode::reverse>(f));
    const auto by_s = run(jacobian<1>(f))(x, s, 2);
    check_vector(std::get<0>(by_s), {1, -3, 4});
    CHECK(std::get<1>(by_s) == Approx(squares));
    CHECK(run(jacobian(sig<double(double)>([](D a) { return a * a * a; })))(2.0) == Approx(12.0));
  });
}

TEST_CASE("the Hessian, and derivatives of matrices", "[jacobian]") {
  const auto f = [](A x) {
    return x[0] * x[0] * x[1] + sin(x[2]) * x[1] +
           FOR(0, x.size(), D(1.0), [&](I i, D p) { return p * x[i]; });
  };
  const std::vector<double> x{0.5, -1.5, 2.0};
  const std::vector<double> expected{2 * x[1],
                                     2 * x[0] + x[2],
                                     x[1],
                                     2 * x[0] + x[2],
                                     0,
                                     std::cos(x[2]) + x[0],
                                     x[1],
                                     std::cos(x[2]) + x[0],
                                     -std::sin(x[2]) * x[1]};
  by_all([&](auto run) { check_vector(run(hessian(f))(x).data, expected); });
  check_all(
      {.order = 1}, "grad of a Jacobian", [](A a) { return sum(jacobian(wide)(a)) * a[1]; }, x);
  check_all(
      {.order = 1}, "grad of a Hessian", [=](A a) { return sum(hessian(f)(a)); }, x);
  check_all(
      {.order = 1}, "vmap in a Jacobian",
      [](A a) {
        return sum(jacobian(sig<Array<double>(Array<double>)>(
                       [](A b) { return vmap(sig<double(double)>([](D t) { return sin(t) * t; }))(b); }))(a) *
                   2.0);
      },
      x);
  // Of several arguments: blocks.
  const auto energy = [](A a, D s) { return sum(a * a) * s * s; };
  by_all([&](auto run) {
    const auto blocks = run(hessian(energy))(std::vector<double>{1, 2}, 3.0);
    const auto& [of_a, of_s] = blocks;
    check_vector(std::get<0>(of_a).data, {18, 0, 0, 18});
    check_vector(std::get<1>(of_a), {12, 24});
    check_vector(std::get<0>(of_s), {12, 24});
    CHECK(std::get<1>(of_s) == Approx(10.0));
  });
  // Rules, fixed points and stop_gradient inside.
  const auto mixed = [](A a) {
    const D root = fixpoint([](D t, D s) { return 0.5 * (t + s / t); }, 1.0, a[0]);
    const D tenfold = custom_vjp(
        sig<double(double)>([](D t) { return t * t; }), [](D t) { return std::tuple(t * t, t); },
        [](D t, D g) { return 10.0 * t * g; })(a[1]);
    return fill(root, 3).set(1, tenfold).set(2, stop_gradient(a[0]) * a[1]);
  };
  by_all([&](auto run) {
    const std::vector<double> rows{0.25, 0, 0, 30, 0, 4};
    check_vector(run(jacobian<mode::forward>(mixed))(std::vector<double>{4, 3}).data, rows);
    check_vector(run(jacobian<mode::reverse>(mixed))(std::vector<double>{4, 3}).data, rows);
  });
}

TEST_CASE("what jacobian refuses", "[jacobian][errors]") {
  const auto matrix = [](A x) { return outer(x, x); };
  const std::vector<double> x{1, 2};
  CHECK(error_of([&] {
          eager(jacobian(matrix))(x);
        }).find("jacobian: expected a result to be a floating scalar or array, got f64[2,2]") !=
        std::string::npos);
  const std::string staged = error_of([&] { compile(jacobian(matrix), {.target = Target::c}); });
  CHECK(staged.find("jacobian_test.cpp:") != std::string::npos);
  CHECK(staged.find("jacobian: expected a result to be a floating scalar or array, got f64[?,?]") !=
        std::string::npos);
}
