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
