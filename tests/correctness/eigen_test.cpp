// Eigen matrices of Reps: as arguments, results, states of loops, and in Eigen's own operations.
#include <Eigen/Dense>
#include <catch2/catch.hpp>
#include <lantern/eigen.hpp>

using namespace lantern;
using D = Rep<double>;
using I = Rep<int64_t>;
using V = Eigen::Matrix<D, 3, 1>;
using M = Eigen::Matrix<D, 3, 3>;
using HostV = Eigen::Matrix<double, 3, 1>;
using HostM = Eigen::Matrix<double, 3, 3>;

namespace {

/// The same for numbers and for Reps of them.
template <class T>
T shape(const Eigen::Matrix<T, 3, 1>& a, const Eigen::Matrix<T, 3, 3>& m) {
  const Eigen::Matrix<T, 3, 1> b = 2.0 * (m * a) - a * 0.5;
  return a.cross(b).squaredNorm() + m.determinant() + (m.inverse() * a).dot(b) + b.norm() +
         m.transpose().trace();
}
D shape_of(V a, M m) { return shape<D>(a, m); }
/// Turns, and shrinks what is far out.
V turned(V a, M m, I n) {
  return FOR(0, n, a, [&](I, V v) {
    V w = 0.9 * (m * v);
    return IF(w(0) > 0.5, [&] { return V(w * 0.5); }, [&] { return w; });
  });
}

const HostV a(0.3, -0.7, 1.1);
HostM matrix() {
  HostM m;
  m << 2.0, 0.1, -0.3, 0.4, 1.5, 0.2, -0.1, 0.3, 1.2;
  return m;
}

}  // namespace

TEST_CASE("Eigen: values and derivatives of its operations") {
  const double expected = shape<double>(a, matrix());
  CHECK(eager(shape_of)(a, matrix()) == Approx(expected));
  CHECK(compile(shape_of)(a, matrix()) == Approx(expected));
  CHECK(check_derivative(shape_of)(a, matrix()) < 1e-6);
  const auto [y, g] = compile(value_and_grad(shape_of))(a, matrix());
  const auto& [ga, gm] = g;
  const auto [y2, g2] = eager(value_and_grad(shape_of))(a, matrix());
  const auto& [ga2, gm2] = g2;
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(ga)>, HostV>);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(gm)>, HostM>);
  CHECK((ga - ga2).norm() < 1e-12);
  CHECK((gm - gm2).norm() < 1e-12);
  HostM moved = matrix();
  const double h = 1e-6;
  moved(1, 2) += h;
  CHECK(gm(1, 2) == Approx((shape<double>(a, moved) - expected) / h).epsilon(1e-4));
}

TEST_CASE("Eigen: matrices as the state of loops, results of branches and of functions") {
  HostV v = a;
  for (int i = 0; i < 5; ++i) {
    v = 0.9 * (matrix() * v);
    if (v(0) > 0.5) v *= 0.5;
  }
  const HostV eagerly = eager(turned)(a, matrix(), 5), compiled = compile(turned)(a, matrix(), 5);
  CHECK((eagerly - v).norm() < 1e-12);
  CHECK((compiled - v).norm() < 1e-12);
  CHECK(check_derivative(turned)(a, matrix(), 5) < 1e-6);
  const auto [value, tangent] = compile(jvp(turned))(a, matrix(), 5, HostV(1, 0, 0), HostM::Zero());
  HostV near = a;
  near(0) += 1e-6;
  CHECK((tangent - (eager(turned)(near, matrix(), 5) - v) / 1e-6).norm() < 1e-4);
}

TEST_CASE("Eigen: the Jacobian of vectors and the Hessian of a vector are matrices") {
  using V2 = Eigen::Matrix<D, 2, 1>;
  const auto f = [](V x) {
    V2 y;
    y << x[0] * x[1], sin(x[2]);
    return y;
  };
  const auto product = [](V x) { return x[0] * x[1] * x[2]; };
  const HostV x(1.0, 2.0, 0.5);
  Eigen::Matrix<double, 2, 3> expected;
  expected << 2.0, 1.0, 0.0, 0.0, 0.0, std::cos(0.5);
  const Eigen::Matrix<double, 2, 3> eagerly = eager(jacobian(f))(x), compiled = compile(jacobian<mode::reverse>(f))(x);
  CHECK((eagerly - expected).norm() < 1e-15);
  CHECK((compiled - expected).norm() < 1e-15);
  HostM second;
  second << 0.0, 0.5, 2.0, 0.5, 0.0, 1.0, 2.0, 1.0, 0.0;
  const HostM hessian_of_product = compile(hessian(product))(x);
  CHECK((hessian_of_product - second).norm() < 1e-15);
  const HostV times = compile([&](V at) { return V(jacobian(f)(at).transpose() * V2(jacobian(f)(at) * at)); })(x);
  CHECK((times - expected.transpose() * (expected * x)).norm() < 1e-14);
}

namespace {

D entry(Rep<Tensor<double, dyn, dyn>> m, Rep<Array<double>> v) { return m(0, 1) * v[1] + sum(m); }
Rep<Tensor<double, dyn, dyn>> scaled(Rep<Tensor<double, dyn, dyn>> m, D s) { return s * m; }
Rep<Array<double>> squares(Rep<Tensor<double, dyn>> v) { return v * v; }

/// Every way of calling them takes matrices of Eigen by their strides.
template <class Entry>
void check_arguments(const Entry& call) {
  Eigen::MatrixXd m(2, 3);
  m << 1.0, 2.0, 3.0, 4.0, 5.0, 6.0;
  Eigen::VectorXd v(2);
  v << 1.0, 10.0;
  CHECK(call(m, v) == 41.0);
  CHECK(call(m.transpose(), v) == 61.0);
  CHECK(call(m.block(0, 1, 2, 2), m.row(1)) == 31.0);
  CHECK(call(m, m.col(1)) == 31.0);
  const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows = m;
  CHECK(call(rows, std::vector<double>{1.0, 10.0}) == 41.0);
  const double data[] = {1.0, -1.0, 10.0, -1.0};
  const Eigen::Map<const Eigen::VectorXd, 0, Eigen::InnerStride<2>> apart(data, 2);
  CHECK(call(m, apart) == 41.0);
  const Eigen::Map<const Eigen::MatrixXd> square(data, 2, 2);
  CHECK_THROWS_WITH(call(m, square), "a matrix is passed where the function takes an array, Rep<Array<T>>; declare the "
                                     "parameter as a Rep<Tensor<T, dyn, dyn>>, or pass a row or column");
}

}  // namespace

TEST_CASE("Eigen: matrices of any size are arguments of arrays and tensors, and targets") {
  check_arguments(eager(entry));
  check_arguments(compile(entry, {.target = Target::c}));
  Eigen::MatrixXd m(2, 3), all = Eigen::MatrixXd::Zero(3, 4), same(2, 3);
  m << 1.0, 2.0, 3.0, 4.0, 5.0, 6.0;
  const auto scale = compile(scaled, {.target = Target::c});
  scale.into(same, m, 2.0);
  CHECK(same == 2.0 * m);
  scale.into(all.block(1, 1, 2, 3), m, 3.0);
  CHECK(all.block(1, 1, 2, 3) == 3.0 * m);
  CHECK(all.row(0).norm() + all.col(0).norm() == 0.0);
  scale.accumulate_into(same.topRows(1), m.topRows(1), 1.0);
  CHECK(same.row(0) == 3.0 * m.row(0));
  scale.into(m, m, 2.0);  // where it is
  CHECK(m(1, 0) == 8.0);
  Eigen::VectorXd row(3);
  const auto square = compile(squares, {.target = Target::c});
  square.into(row, m.row(0));
  CHECK(row == m.row(0).transpose().cwiseProduct(m.row(0).transpose()));
  CHECK(square(Eigen::Vector2d(2.0, 3.0)) == std::vector<double>{4.0, 9.0});
  CHECK(square(std::vector<double>{2.0, 3.0}) == std::vector<double>{4.0, 9.0});
}
