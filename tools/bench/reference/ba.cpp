#include "ba.hpp"

#include <cmath>

namespace lantern::bench::reference {
namespace {

double dot(const double* a, const double* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

void cross(const double* a, const double* b, double* out) {
  out[0] = a[1] * b[2] - a[2] * b[1];
  out[1] = a[2] * b[0] - a[0] * b[2];
  out[2] = a[0] * b[1] - a[1] * b[0];
}

/// Rodrigues' formula: `point` turned about the axis `rotation` by its length.
void rotate(const double* rotation, const double* point, double* out) {
  const double squared = dot(rotation, rotation);
  double axis[3], normal[3];
  if (squared != 0) {
    const double angle = std::sqrt(squared);
    const double cosine = std::cos(angle), sine = std::sin(angle);
    for (int i = 0; i < 3; ++i) axis[i] = rotation[i] / angle;
    cross(axis, point, normal);
    const double along = dot(axis, point) * (1 - cosine);
    for (int i = 0; i < 3; ++i) out[i] = point[i] * cosine + normal[i] * sine + axis[i] * along;
  } else {
    cross(rotation, point, normal);
    for (int i = 0; i < 3; ++i) out[i] = point[i] + normal[i];
  }
}

void distort(const double* radial, double* p) {
  const double s = p[0] * p[0] + p[1] * p[1];
  const double factor = 1 + radial[0] * s + radial[1] * s * s;
  p[0] *= factor;
  p[1] *= factor;
}

void project(const double* camera, const double* point, double* p) {
  const double *rotation = camera, *centre = camera + 3, *focal = camera + 6, *principal = camera + 7,
               *radial = camera + 9;
  double offset[3], seen[3];
  for (int i = 0; i < 3; ++i) offset[i] = point[i] - centre[i];
  rotate(rotation, offset, seen);
  p[0] = seen[0] / seen[2];
  p[1] = seen[1] / seen[2];
  distort(radial, p);
  p[0] = p[0] * *focal + principal[0];
  p[1] = p[1] * *focal + principal[1];
}

}  // namespace

void ba(const BaInput& in, std::span<double> reprojection, std::span<double> weight) {
  for (std::size_t i = 0; i < in.joins.size(); ++i) {
    const auto [camera, point] = in.joins[i];
    double p[2];
    project(&in.camera[static_cast<std::size_t>(camera) * 11], &in.point[static_cast<std::size_t>(point) * 3],
            p);
    reprojection[2 * i] = in.weight[i] * (p[0] - in.feature[2 * i]);
    reprojection[2 * i + 1] = in.weight[i] * (p[1] - in.feature[2 * i + 1]);
  }
  for (std::size_t i = 0; i < in.weight.size(); ++i) weight[i] = 1 - in.weight[i] * in.weight[i];
}

}  // namespace lantern::bench::reference
