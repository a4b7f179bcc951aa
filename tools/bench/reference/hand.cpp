#include "hand.hpp"

#include <Eigen/Dense>
#include <cmath>
#include <vector>

namespace lantern::bench::reference {

using Eigen::Index;
using Eigen::Matrix3d;
using Eigen::Matrix3Xd;
using Eigen::Matrix4d;
using Eigen::Matrix4Xd;
using Eigen::MatrixXd;
using Eigen::Vector3d;

struct Hand::Matrices {
  std::vector<int> parent;
  std::vector<Matrix4d> base_relative, inverse_base_absolute;
  Matrix4Xd vertices;  // homogeneous
  MatrixXd weights;    // bones x vertices
  std::vector<std::array<int, 3>> triangles;
  std::vector<int> correspondence;
  Matrix3Xd measured;
};

Hand::Hand(const HandInput& in) {
  using RowMajor = Eigen::Matrix<double, 4, 4, Eigen::RowMajor>;
  auto m = std::make_unique<Matrices>();
  const HandModel& model = in.model;
  m->parent = model.parent;
  for (const auto& entries : model.base_relative)
    m->base_relative.emplace_back(Eigen::Map<const RowMajor>(entries.data()));
  for (const auto& entries : model.inverse_base_absolute)
    m->inverse_base_absolute.emplace_back(Eigen::Map<const RowMajor>(entries.data()));
  const auto vertices = static_cast<Index>(model.vertices.size()), bones = static_cast<Index>(model.bones());
  m->vertices =
      Eigen::Map<const Matrix3Xd>(model.vertices.data()->data(), 3, vertices).colwise().homogeneous();
  m->weights = Eigen::Map<const MatrixXd>(model.weights.data(), bones, vertices);
  m->triangles = model.triangles;
  m->correspondence = in.correspondence;
  m->measured =
      Eigen::Map<const Matrix3Xd>(in.measured.data()->data(), 3, static_cast<Index>(in.measured.size()));
  matrices_ = std::move(m);
}

Hand::~Hand() = default;

namespace {

Matrix3d angle_axis_to_matrix(const Vector3d& rotation) {
  const double angle = rotation.norm();
  if (angle < 1e-4) return Matrix3d::Identity();
  return Eigen::AngleAxisd(angle, rotation / angle).toRotationMatrix();
}

/// Rz Ry Rx of the angles x, z, y, in that order.
Matrix3d euler_to_matrix(const Vector3d& xzy) {
  using Eigen::AngleAxisd;
  return (AngleAxisd(xzy[1], Vector3d::UnitZ()).toRotationMatrix() *
          AngleAxisd(xzy[2], Vector3d::UnitY()).toRotationMatrix() *
          AngleAxisd(xzy[0], Vector3d::UnitX()).toRotationMatrix());
}

/// theta as columns: global rotation, scale, translation, then one for each bone.
Matrix3Xd pose(std::span<const double> theta, Index bones) {
  Matrix3Xd columns = Matrix3Xd::Zero(3, bones + 3);
  columns.col(0) = Vector3d(theta[0], theta[1], theta[2]);
  columns.col(1).setOnes();
  columns.col(2) = Vector3d(theta[3], theta[4], theta[5]);
  std::size_t at = 6;
  for (Index finger = 0; finger < 5; ++finger) {
    for (Index joint = 0; joint < 3; ++joint) {
      const Index column = 5 + 4 * finger + joint;
      columns(0, column) = theta[at++];
      if (joint == 0) columns(1, column) = theta[at++];
    }
  }
  return columns;
}

}  // namespace

void Hand::operator()(std::span<const double> theta, std::span<const double> u,
                      std::span<double> errors) const {
  const Matrices& m = *matrices_;
  const std::size_t bones = m.parent.size();
  const Matrix3Xd columns = pose(theta, static_cast<Index>(bones));

  std::vector<Matrix4d> absolute(bones);
  Matrix3Xd positions = Matrix3Xd::Zero(3, m.vertices.cols());
  for (std::size_t bone = 0; bone < bones; ++bone) {
    const auto at = static_cast<Index>(bone);
    Matrix4d turn = Matrix4d::Identity();
    turn.topLeftCorner<3, 3>() = euler_to_matrix(columns.col(at + 3));
    const Matrix4d relative = m.base_relative[bone] * turn;
    absolute[bone] =
        m.parent[bone] < 0 ? relative : absolute[static_cast<std::size_t>(m.parent[bone])] * relative;
    const Matrix4d transform = absolute[bone] * m.inverse_base_absolute[bone];
    const Matrix3Xd moved = transform.topRows<3>() * m.vertices;
    positions += moved * m.weights.row(at).asDiagonal();
  }
  const Matrix3d rotation = angle_axis_to_matrix(columns.col(0));
  positions = ((rotation * columns.col(1).asDiagonal() * positions).colwise() + columns.col(2)).eval();

  Eigen::Map<Matrix3Xd> out(errors.data(), 3, m.measured.cols());
  for (Index i = 0; i < out.cols(); ++i) {
    const auto point = static_cast<std::size_t>(i);
    const auto c = static_cast<std::size_t>(m.correspondence[point]);
    if (u.empty()) {
      out.col(i) = m.measured.col(i) - positions.col(m.correspondence[point]);
    } else {
      const auto [a, b, d] = m.triangles[c];
      const double first = u[2 * point], second = u[2 * point + 1];
      out.col(i) = m.measured.col(i) - (first * positions.col(a) + second * positions.col(b) +
                                        (1 - first - second) * positions.col(d));
    }
  }
}

}  // namespace lantern::bench::reference
