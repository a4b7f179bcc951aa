// Bundle adjustment: where six cameras stood, and sixty points of what they saw, from where the points are in
// the pictures.
//
// Levenberg and Marquardt's method asks for the derivatives of each observation by the nine numbers that it
// depends on. That is `jacobian` of one observation, and `vmap` makes it one of all of them, in the lanes of
// vectors; the normal equations are put together and solved by Eigen.
#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <lantern/lantern.hpp>
#include <span>
#include <vector>

#include "support.hpp"

using namespace lantern;

using D = Rep<double>;
using I = Rep<int64_t>;
using Matrix = Rep<Tensor<double, dyn, dyn>>;

/// Rotation (its axis, times its angle) and shift of a camera; then the point.
template <class T>
using Nine = std::array<T, 9>;

/// Where the camera sees the point. Source of the rotation: Rodrigues' formula.
template <class T>
std::array<T, 2> seen(const Nine<T>& z) {
  using std::sin, std::cos, std::sqrt;
  const auto& [a, b, c, tx, ty, tz, x, y, w] = z;
  T square = a * a + b * b + c * c, sine = 1.0,
    cosine = 0.5;  // sin(angle) / angle, (1 - cos(angle)) / angle^2
  if (square > 1e-12) {
    T angle = sqrt(square);
    sine = sin(angle) / angle, cosine = (1.0 - cos(angle)) / square;
  }
  T along = cosine * (a * x + b * y + c * w), rest = 1.0 - cosine * square;
  T u = rest * x + sine * (b * w - c * y) + along * a + tx;
  T v = rest * y + sine * (c * x - a * w) + along * b + ty;
  T depth = rest * w + sine * (a * y - b * x) + along * c + tz;
  return {500.0 * u / depth, 500.0 * v / depth};
}
std::array<D, 2> project(Nine<D> z) { return seen(z); }

/// Half of the squared distances, in all pictures, between where points are seen and where they should be.
D cost(Matrix cameras, Matrix points, Rep<Array<int64_t>> camera, Rep<Array<int64_t>> point, Matrix pixels) {
  D sum = 0.0;
  for (I i = 0; i < camera.size(); ++i) {
    I c = camera[i], p = point[i];
    auto [u, v] = seen(Nine<D>{cameras(c, 0), cameras(c, 1), cameras(c, 2), cameras(c, 3), cameras(c, 4),
                               cameras(c, 5), points(p, 0), points(p, 1), points(p, 2)});
    u -= pixels(i, 0), v -= pixels(i, 1);
    sum += 0.5 * (u * u + v * v);
  }
  return sum;
}

LANTERN_FUNCTION(objective, cost)
LANTERN_FUNCTION(gradient, value_and_grad<0, 1>(cost))
LANTERN_FUNCTION(blocks, vmap(jacobian(project)))

int main() {
  constexpr int views = 6, count = 60, observations = views * count, unknowns = 6 * views + 3 * count;
  constexpr double noise = 0.5;

  // Cameras around a cube of points.
  Random random;
  TensorValue<double> cameras({views, 6}), points({count, 3}), pixels({observations, 2});
  for (int c = 0; c < views; ++c)
    for (int k = 0; k < 6; ++k) cameras[6 * c + k] = k == 1 ? c * 0.2 - 0.5 : k == 5 ? 6.0 : 0.1 * random();
  for (double& x : points.data) x = random();
  // Which unknown is number k of observation i, and the nine numbers of it.
  const auto column = [](int i, int k) {
    return k < 6 ? i / count * 6 + k : 6 * views + i % count * 3 + k - 6;
  };
  const auto unknown = [&](int k) -> double& { return k < 6 * views ? cameras[k] : points[k - 6 * views]; };
  const auto nine = [&](int i) {
    Nine<double> z;
    for (int k = 0; k < 9; ++k) z[k] = unknown(column(i, k));
    return z;
  };
  std::vector<int64_t> camera, point;
  for (int i = 0; i < observations; ++i) {
    camera.push_back(i / count), point.push_back(i % count);
    const auto at = seen(nine(i));
    for (int d = 0; d < 2; ++d) pixels[2 * i + d] = at[d] + noise * std::sqrt(3.0) * random();
  }
  for (int k = 0; k < unknowns; ++k) unknown(k) += (k < 6 * views ? 0.1 : 0.3) * random();  // the first guess

  const auto move = [&](const Eigen::VectorXd& step) {
    for (int k = 0; k < unknowns; ++k) unknown(k) += step[k];
  };
  const auto distance = [&](double value) { return std::sqrt(2 * value / observations); };

  double damping = 1e-3, value = objective(cameras, points, camera, point, pixels), change = value;
  fmt::print("first guess: off by {:.2f} pixels\n", distance(value));
  int steps = 0;
  double error = 0;  // of the gradient
  for (; change > 1e-9 * value && steps < 50; ++steps) {
    Nine<std::vector<double>> z;
    for (int i = 0; i < observations; ++i)
      for (int k = 0; k < 9; ++k) z[k].push_back(unknown(column(i, k)));
    Nine<std::span<const double>> columns;
    std::copy(z.begin(), z.end(), columns.begin());
    const auto j = blocks(columns);
    Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(unknowns, unknowns);
    Eigen::VectorXd slope = Eigen::VectorXd::Zero(unknowns);
    for (int i = 0; i < observations; ++i) {
      const auto at = seen(nine(i));
      for (int d = 0; d < 2; ++d)
        for (int k = 0; k < 9; ++k) {
          slope[column(i, k)] += j[d][k][i] * (at[d] - pixels[2 * i + d]);
          for (int l = 0; l < 9; ++l) normal(column(i, k), column(i, l)) += j[d][k][i] * j[d][l][i];
        }
    }
    // The same by reverse mode, of the sum.
    const auto [by_cameras, by_points] = std::get<1>(gradient(cameras, points, camera, point, pixels));
    for (int k = 0; k < unknowns; ++k)
      error =
          std::max(error, std::abs(slope[k] - (k < 6 * views ? by_cameras[k] : by_points[k - 6 * views])));
    normal.diagonal() *= 1 + damping;
    const Eigen::VectorXd step = normal.ldlt().solve(-slope);
    move(step);
    const double next = objective(cameras, points, camera, point, pixels);
    change = std::abs(value - next);
    damping *= next < value ? 0.2 : 5.0;
    if (next < value)
      value = next;
    else
      move(-step);
  }
  fmt::print("after {} steps: off by {:.3f} pixels; two modes' gradients differ by {:.0e}\n", steps,
             distance(value), error);
  const double unit = seconds([&] { objective(cameras, points, camera, point, pixels); });
  const double slower = seconds([&] { gradient(cameras, points, camera, point, pixels); }) / unit;
  fmt::print("gradient / objective: {:.1f}\n", slower);
  // The noise is 0.5 in each direction; of what is observed, the unknowns take some away.
  const double expected = noise * std::sqrt(2.0 - (unknowns - 7.0) / observations);
  if (std::abs(distance(value) - expected) < 0.05 && error < 1e-4) return 0;
  fmt::print("expected to be off by {:.3f} pixels\n", expected);
  return 1;
}
