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
    CHECK(run(hessian<1>(energy))(std::vector<double>{1, 2}, 3.0) == Approx(10.0));
    check_vector(run(hessian<0>(energy))(std::vector<double>{1, 2}, 3.0).data, {18, 0, 0, 18});
    const auto swapped = run(hessian<1, 0>(energy))(std::vector<double>{1, 2}, 3.0);
    check_vector(std::get<0>(std::get<1>(swapped)), {12, 24});
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

// ---- tensors of higher rank ----

namespace {

using M = Rep<Tensor<double, dyn, dyn>>;
using HostTensor = TensorValue<double>;

/// Elements of a function of the elements of x, by central differences: one row per element of the result.
template <class F>
std::vector<double> by_differences(const F& f, std::vector<double> x) {
  std::vector<std::vector<double>> columns;
  for (double& at : x) {
    const double saved = at, h = 1e-4;
    const auto slope = [&](double step) {
      at = saved + step;
      const std::vector<double> up = f(x);
      at = saved - step;
      std::vector<double> low = f(x);
      at = saved;
      for (std::size_t i = 0; i < up.size(); ++i) low[i] = (up[i] - low[i]) / (2 * step);
      return low;
    };
    const std::vector<double> wide = slope(h);
    std::vector<double> best = slope(h / 2);
    for (std::size_t i = 0; i < best.size(); ++i) best[i] = (4 * best[i] - wide[i]) / 3;
    columns.push_back(best);
  }
  std::vector<double> rows;
  for (std::size_t i = 0; i < columns[0].size(); ++i)
    for (const auto& column : columns) rows.push_back(column[i]);
  return rows;
}

void check_near(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-7).margin(1e-8));
}

}  // namespace

TEST_CASE("from matrix to matrix: the result's shape, then the argument's", "[jacobian]") {
  // 2 by 3 to 3 by 3.
  const auto f = [](M m) { return matmul(transpose(sin(m)), m) * m(0, 1); };
  const HostTensor x{{0.5, -1.5, 2.0, 0.3, 0.9, -0.4}, {2, 3}};
  const auto value = eager(f);
  const std::vector<double> expected = by_differences(
      [&](const std::vector<double>& at) {
        return value(HostTensor{at, {2, 3}}).data;
      },
      x.data);
  by_all([&](auto run) {
    const auto test = [&](auto j) {
      const auto found = run(j)(x);
      CHECK(found.shape == Shape{3, 3, 2, 3});
      check_near(found.data, expected);
    };
    test(jacobian(f));
    test(jacobian<mode::forward>(f));
    test(jacobian<mode::reverse>(f));
  });
}

TEST_CASE("tensors beside arrays and scalars", "[jacobian]") {
  const auto f = [](M m, A a, D s) {
    return std::tuple(A(as_array(matmul(m, as_tensor(a))) * s), M(outer(a, a) * s),
                      D(sum(m * m) * a[0] + s * s));
  };
  const HostTensor m{{0.5, -1.5, 2.0, 0.3}, {2, 2}};
  const std::vector<double> a{0.7, -0.2}, all{0.5, -1.5, 2.0, 0.3, 0.7, -0.2, 1.3};
  const auto value = eager(f);
  const auto at = [&](std::size_t output, std::size_t input) {
    const auto rows = by_differences(
        [&](const std::vector<double>& x) -> std::vector<double> {
          const auto y =
              value(HostTensor{{x[0], x[1], x[2], x[3]}, {2, 2}}, std::vector<double>{x[4], x[5]}, x[6]);
          return output == 0   ? std::get<0>(y)
                 : output == 1 ? std::get<1>(y).data
                               : std::vector<double>{std::get<2>(y)};
        },
        all);
    const std::size_t from = input == 0 ? 0 : input == 1 ? 4 : 6, n = input == 0 ? 4 : input == 1 ? 2 : 1;
    std::vector<double> block;
    for (std::size_t row = 0; row < rows.size() / 7; ++row)
      for (std::size_t k = 0; k < n; ++k) block.push_back(rows[row * 7 + from + k]);
    return block;
  };
  by_all([&](auto run) {
    const auto test = [&](auto j) {
      const auto found = run(j)(m, a, 1.3);
      const auto& [vector, matrix, scalar] = found;
      CHECK(std::get<0>(vector).shape == Shape{2, 2, 2});
      CHECK(std::get<1>(vector).shape == Shape{2, 2});
      CHECK(std::get<0>(matrix).shape == Shape{2, 2, 2, 2});
      CHECK(std::get<1>(matrix).shape == Shape{2, 2, 2});
      CHECK(std::get<2>(matrix).shape == Shape{2, 2});
      CHECK(std::get<0>(scalar).shape == Shape{2, 2});
      check_near(std::get<0>(vector).data, at(0, 0));
      check_near(std::get<1>(vector).data, at(0, 1));
      check_near(std::get<2>(vector), at(0, 2));
      check_near(std::get<0>(matrix).data, at(1, 0));
      check_near(std::get<1>(matrix).data, at(1, 1));
      check_near(std::get<2>(matrix).data, at(1, 2));
      check_near(std::get<0>(scalar).data, at(2, 0));
      check_near(std::get<1>(scalar), at(2, 1));
      CHECK(std::get<2>(scalar) == Approx(at(2, 2)[0]).epsilon(1e-7));
    };
    test(jacobian(f));
    test(jacobian<mode::forward>(f));
    test(jacobian<mode::reverse>(f));
  });
}

TEST_CASE("rank three, sizes known beforehand, and rows of no element", "[jacobian]") {
  using Cube = Rep<Tensor<double, dyn, dyn, dyn>>;
  const auto f = [](Cube c) { return M(c.row(0)) * c(1, 0, 1); };
  const HostTensor x{{1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2}};
  std::vector<double> expected(4 * 8, 0.0);
  for (std::size_t i = 0; i < 4; ++i) {
    expected[i * 8 + i] = 6;                           // c[1, 0, 1]
    expected[i * 8 + 5] = static_cast<double>(i + 1);  // element i of c[0]
  }
  using Fixed = Rep<Tensor<double, 2, 3>>;
  const auto fixed = [](Fixed m) { return transpose(m) * 2.0; };
  by_all([&](auto run) {
    const auto found = run(jacobian(f))(x);
    CHECK(found.shape == Shape{2, 2, 2, 2, 2});
    check_vector(found.data, expected);
    const auto moved = run(jacobian(fixed))(HostTensor{{1, 2, 3, 4, 5, 6}, {2, 3}});
    CHECK(moved.shape == Shape{3, 2, 2, 3});
    for (std::size_t i = 0; i < 36; ++i) {
      const std::size_t row = i / 6, column = i % 6;  // element (r, c) of the result is element (c, r) of m
      CHECK(moved.data[i] == ((row % 2) * 3 + row / 2 == column ? 2.0 : 0.0));
    }
    const auto empty =
        run(jacobian(sig<Tensor<double, dyn, dyn>(Tensor<double, dyn, dyn>)>([](M m) { return m * m; })))(
            HostTensor{{}, {0, 3}});
    CHECK(empty.shape == Shape{0, 3, 0, 3});
  });
}

TEST_CASE("the Hessian by a matrix, and derivatives of Jacobians of matrices", "[jacobian]") {
  const auto energy = [](M m) { return sum(M(matmul(m, m)) * m) + m(0, 1) * m(1, 0); };
  const HostTensor x{{0.5, -1.5, 2.0, 0.3}, {2, 2}};
  const auto slope = eager(grad(energy));
  const std::vector<double> expected = by_differences(
      [&](const std::vector<double>& at) {
        return slope(HostTensor{at, {2, 2}}).data;
      },
      x.data);
  by_all([&](auto run) {
    const auto h = run(hessian(energy))(x);
    CHECK(h.shape == Shape{2, 2, 2, 2});
    check_near(h.data, expected);
  });
  check_all(
      {.order = 2}, "grad of a Jacobian of a matrix",
      [](D s) {
        const auto j = jacobian(sig<Tensor<double, dyn, dyn>(Tensor<double, dyn, dyn>)>(
            [](M m) { return matmul(m, m * m); }))(fill(s, 2, 2).set(0, 1, s * s));
        return sum(j * j);
      },
      0.7);
}

TEST_CASE("what jacobian refuses", "[jacobian][errors]") {
  // Types that differ.
  const auto mixed = [](A x, Rep<float> s) { return x * cast<double>(s); };
  const std::vector<double> x{1, 2};
  const std::string message = "jacobian: expected results and arguments of one type, got f64[";
  const std::string run = error_of([&] { eager(jacobian(mixed))(x, 2.0F); });
  CHECK(run.find(message + "2] and f32") != std::string::npos);
  const std::string staged = error_of([&] { compile(jacobian(mixed), {.target = Target::c}); });
  CHECK(staged.find("jacobian_test.cpp:") != std::string::npos);
  CHECK(staged.find(message + "?] and f32") != std::string::npos);
  CHECK(staged.find("jacobian<0>(f) differentiates by the arguments that are named") != std::string::npos);
}
