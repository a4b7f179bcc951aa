#include "model_ba.hpp"

#include "derivative_check.hpp"
#include "model.hpp"

namespace lantern::bench {
namespace {

/// Rotation 3, centre 3, focal length, principal point 2, radial distortion 2.
using Camera = std::array<Number, 11>;
using Pixel = std::array<Number, 2>;

/// Rodrigues' formula: `x` turned about the axis `rotation` by its length.
Vector3 rotate(const Vector3& rotation, const Vector3& x) {
  const Number squared = dot(rotation, rotation);
  return IF(
      squared != 0.0,
      [&] {
        const Number angle = sqrt(squared), cosine = cos(angle);
        const Vector3 axis = times(1.0 / angle, rotation);
        return plus(plus(times(cosine, x), times(sin(angle), cross(axis, x))),
                    times(dot(axis, x) * (1.0 - cosine), axis));
      },
      [&] { return plus(x, cross(rotation, x)); });
}

Pixel project(const Camera& camera, const Vector3& point) {
  const auto& [r1, r2, r3, c1, c2, c3, focal, u0, v0, k1, k2] = camera;
  const Vector3 seen = rotate({r1, r2, r3}, minus(point, {c1, c2, c3}));
  const Number x = seen[0] / seen[2], y = seen[1] / seen[2];
  const Number s = x * x + y * y, distortion = 1.0 + k1 * s + k2 * s * s;
  return {x * distortion * focal + u0, y * distortion * focal + v0};
}

Pixel reprojection_error(const Camera& camera, const Vector3& point, const Number& weight,
                         const Pixel& feature) {
  const Pixel p = project(camera, point);
  return {weight * (p[0] - feature[0]), weight * (p[1] - feature[1])};
}
Number weight_error(Number weight) { return 1.0 - weight * weight; }

/// The errors of all observations: of the reprojection, two a row, and of the weight.
std::tuple<Matrix, Vector> ba(Matrix cameras, Matrix points, Vector weights, Matrix features, Indices camera,
                              Indices point) {
  const Index n = weights.size();
  return FOR(
      0, n, std::tuple(fill(Number(0.0), n, 2), fill(Number(0.0), n)),
      [&](Index i, Matrix errors, Vector weight_errors) {
        const Pixel e = reprojection_error(entries<11>(cameras, camera[i]), entries<3>(points, point[i]),
                                           weights[i], entries<2>(features, i));
        return std::tuple(with_entries(errors, i, 0, e), weight_errors.set(i, weight_error(weights[i])));
      });
}

/// What is not zero of the Jacobian: for each observation a row with the derivatives of its two errors, each
/// by camera, point and weight; and the derivatives of the weight errors.
std::tuple<Matrix, Vector> ba_jacobian(Matrix cameras, Matrix points, Vector weights, Matrix features,
                                       Indices camera, Indices point) {
  const Index n = weights.size();
  return FOR(0, n, std::tuple(fill(Number(0.0), n, 30), fill(Number(0.0), n)),
             [&](Index i, Matrix rows, Vector weight_entries) {
               const Pixel feature = entries<2>(features, i);
               const auto error = [&](Camera c, Vector3 p, Number w) {
                 return reprojection_error(c, p, w, feature);
               };
               const Camera c = entries<11>(cameras, camera[i]);
               const Vector3 p = entries<3>(points, point[i]);
               for (const int k : {0, 1}) {
                 const Pixel seed{k == 0 ? 1.0 : 0.0, k == 1 ? 1.0 : 0.0};
                 const auto [by_camera, by_point, by_weight] =
                     std::get<1>(vjp(error)(c, p, weights[i], seed));
                 rows = with_entries(rows, i, 15 * k, by_camera);
                 rows = with_entries(rows, i, 15 * k + 11, by_point);
                 rows = rows.set(i, 15 * k + 14, by_weight);
               }
               return std::tuple(rows, weight_entries.set(i, grad(weight_error)(weights[i])));
             });
}

}  // namespace

std::vector<Form> ba_forms(const std::shared_ptr<const BaInput>& in, const std::string& problem,
                           int threads) {
  static const auto objective = compile(ba, model_options("ba"));
  static const auto jacobian = compile(ba_jacobian, model_options("ba_jacobian"));

  const std::size_t n = in->joins.size();
  std::vector<std::int64_t> cameras, points;
  for (const auto& [camera, point] : in->joins) cameras.push_back(camera), points.push_back(point);
  const auto run = [=](const auto& f, std::vector<double>& out, std::size_t entries) {
    const auto [rows, weights] = parts(out, entries * n, n);
    f.into(matrix(rows, entries), weights, matrix(in->camera, 11), matrix(in->point, 3),
           std::span(in->weight), matrix(in->feature, 2), std::span(cameras), std::span(points));
  };
  const auto errors = std::make_shared<std::vector<double>>(3 * n);
  const auto run_objective = [=] { run(objective, *errors, 2); };
  const auto derivative = std::make_shared<std::vector<double>>(31 * n);
  const auto reverse = [=](const std::string& name, const auto& f) -> Form {
    const auto run_jacobian = [=] { run(f, *derivative, 30); };
    return {name, run_jacobian,
            [=] { return run_jacobian(), check_derivative(*derivative, problem, differentiable(in)); }};
  };
  std::vector<Form> forms{{"objective", run_objective,
                           [=] { return run_objective(), check_objective(*errors, differentiable(in)); }},
                          reverse("reverse", jacobian)};
  if (threads > 1)
    forms.push_back(
        reverse(in_threads("reverse", threads), compile(ba_jacobian, model_options("ba_jacobian", threads))));
  return forms;
}

}  // namespace lantern::bench
