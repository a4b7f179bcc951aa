#include "model_hand.hpp"

#include "derivative_check.hpp"
#include "model.hpp"

namespace lantern::bench {
namespace {

/// The first three rows of a matrix for homogeneous coordinates, row by row.
using Affine = std::array<Number, 12>;
using Rotation = std::array<Number, 9>;

/// What does not change: matrices with a row of 16 a bone; a row a vertex of positions and of weights.
struct Skin {
  Matrix base_relative, inverse_base_absolute;
  Indices parent;
  Matrix vertices, weights;
};

Affine times(const Affine& a, const Affine& b) {
  Affine c;
  for (std::size_t i = 0; i < 12; i += 4)
    for (std::size_t j = 0; j < 4; ++j) {
      c[i + j] = a[i] * b[j] + a[i + 1] * b[4 + j] + a[i + 2] * b[8 + j];
      if (j == 3) c[i + j] += a[i + 3];
    }
  return c;
}
Affine times(const Affine& a, const Rotation& r) {
  Affine c = a;
  for (std::size_t i = 0; i < 12; i += 4)
    for (std::size_t j = 0; j < 3; ++j) c[i + j] = a[i] * r[j] + a[i + 1] * r[3 + j] + a[i + 2] * r[6 + j];
  return c;
}
Vector3 times(const Affine& a, const Vector3& x) {
  const auto row = [&](std::size_t i) { return a[i] * x[0] + a[i + 1] * x[1] + a[i + 2] * x[2] + a[i + 3]; };
  return {row(0), row(4), row(8)};
}
Vector3 times(const Rotation& r, const Vector3& x) {
  const auto row = [&](std::size_t i) { return r[i] * x[0] + r[i + 1] * x[1] + r[i + 2] * x[2]; };
  return {row(0), row(3), row(6)};
}

/// Rodrigues' formula for the matrix; the identity for angles below 1e-4.
Rotation angle_axis(const Vector3& rotation) {
  const Number squared = dot(rotation, rotation);
  return IF(
      squared < 1e-8, [] { return Rotation{1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}; },
      [&] {
        const Number angle = sqrt(squared), c = cos(angle), s = sin(angle);
        const Vector3 a = bench::times(1.0 / angle, rotation), b = bench::times(1.0 - c, a);
        return Rotation{b[0] * a[0] + c,        b[0] * a[1] - s * a[2], b[0] * a[2] + s * a[1],
                        b[1] * a[0] + s * a[2], b[1] * a[1] + c,        b[1] * a[2] - s * a[0],
                        b[2] * a[0] - s * a[1], b[2] * a[1] + s * a[0], b[2] * a[2] + c};
      });
}

/// Rz Ry Rx.
Rotation euler(const Number& x, const Number& z, const Number& y) {
  const Number cx = cos(x), sx = sin(x), cy = cos(y), sy = sin(y), cz = cos(z), sz = sin(z);
  return {cy * cz,
          sx * sy * cz - cx * sz,
          cx * sy * cz + sx * sz,
          cy * sz,
          sx * sy * sz + cx * cz,
          cx * sy * sz - sx * cz,
          -sy,
          sx * cy,
          cx * cy};
}

/// The angles x, z, y of each bone in a row: three bones of each of five fingers bend, the first of them in
/// two directions.
Matrix pose(const Vector& theta, const Index& bones) {
  Matrix angles = fill(Number(0.0), bones, 3);
  int at = 6;
  for (int finger = 0; finger < 5; ++finger)
    for (int joint = 0; joint < 3; ++joint) {
      const int bone = 2 + 4 * finger + joint;
      angles = angles.set(bone, 0, theta[at++]);
      if (joint == 0) angles = angles.set(bone, 1, theta[at++]);
    }
  return angles;
}

/// How each bone moves the vertices: a row of an affine matrix each.
Matrix bone_transforms(const Vector& theta, const Skin& skin) {
  const Index bones = skin.parent.size();
  const Matrix angles = pose(theta, bones);
  const Matrix none = fill(Number(0.0), bones, 12);
  const auto [absolute, transforms] =
      FOR(0, bones, std::tuple(none, none), [&](Index bone, Matrix before, Matrix done) {
        const Rotation turn = euler(angles(bone, 0), angles(bone, 1), angles(bone, 2));
        const Affine relative = times(entries<12>(skin.base_relative, bone), turn);
        const Index parent = skin.parent[bone];
        const Affine matrix = IF(
            parent < 0, [&] { return relative; },
            [&] { return times(entries<12>(before, parent), relative); });
        return std::tuple(
            with_entries(before, bone, 0, matrix),
            with_entries(done, bone, 0, times(matrix, entries<12>(skin.inverse_base_absolute, bone))));
      });
  return transforms;
}

/// Where the pose moves the vertices, a row each.
Matrix positions(const Vector& theta, const Skin& skin) {
  const Matrix transforms = bone_transforms(theta, skin);
  const Rotation rotation = angle_axis({theta[0], theta[1], theta[2]});
  const Vector3 translation{theta[3], theta[4], theta[5]};
  const Index count = skin.vertices.dim(0);
  return FOR(0, count, fill(Number(0.0), count, 3), [&](Index v, Matrix moved) {
    const Vector3 x = entries<3>(skin.vertices, v);
    const Vector3 blended = FOR(0, skin.parent.size(), Vector3{0.0, 0.0, 0.0}, [&](Index bone, Vector3 sum) {
      const Number weight = skin.weights(v, bone);
      return IF(
          weight == 0.0, [&] { return sum; },
          [&] { return plus(sum, bench::times(weight, times(entries<12>(transforms, bone), x))); });
    });
    return with_entries(moved, v, 0, plus(times(rotation, blended), translation));
  });
}

/// Measured minus modelled position of each point, which is a vertex.
Matrix simple(const Vector& theta, const Skin& skin, const Indices& vertex, const Matrix& measured) {
  const Matrix moved = positions(theta, skin);
  const Index n = vertex.size();
  return FOR(0, n, fill(Number(0.0), n, 3), [&](Index i, Matrix errors) {
    return with_entries(errors, i, 0, minus(entries<3>(measured, i), entries<3>(moved, vertex[i])));
  });
}

/// The same where each point lies on a triangle, of which `corner` holds three vertices, at a place of its
/// own.
Matrix complicated(const Vector& theta, const Matrix& u, const Skin& skin, const Indices& corner,
                   const Matrix& measured) {
  const Matrix moved = positions(theta, skin);
  const Index n = u.dim(0);
  return FOR(0, n, fill(Number(0.0), n, 3), [&](Index i, Matrix errors) {
    const Number first = u(i, 0), second = u(i, 1);
    const auto part = [&](const Number& share, std::int64_t k) {
      return bench::times(share, entries<3>(moved, corner[3 * i + k]));
    };
    const Vector3 modelled = plus(plus(part(first, 0), part(second, 1)), part(1.0 - first - second, 2));
    return with_entries(errors, i, 0, minus(entries<3>(measured, i), modelled));
  });
}

/// Derivatives of three errors a point, each in so many directions.
using Jacobian = Rep<Tensor<double, dyn, dyn, dyn>>;

/// `along(d)` gives the derivatives of all errors in direction d.
template <class F>
Jacobian by_directions(const Index& directions, const Index& points, F along) {
  return FOR(0, directions, fill(Number(0.0), points, 3, directions), [&](Index d, Jacobian all) {
    const Matrix tangent = along(d);
    return FOR(0, points, all, [&](Index i, Jacobian next) {
      for (int k = 0; k < 3; ++k) next = next.set(i, k, d, tangent(i, k));
      return next;
    });
  });
}

/// 1 where i and j are the same, else 0.
Number delta(const Index& i, const Index& j) { return select(i == j, Number(1.0), 0.0); }

Matrix simple_objective(Vector theta, Skin skin, Indices vertex, Matrix measured) {
  return simple(theta, skin, vertex, measured);
}
/// By theta.
Jacobian simple_jacobian(Vector theta, Skin skin, Indices vertex, Matrix measured) {
  const auto errors = [&](Vector t) { return simple(t, skin, vertex, measured); };
  return by_directions(theta.size(), vertex.size(), [&](Index d) {
    const Vector direction = tabulate(theta.size(), [&](Index j) { return delta(j, d); });
    return std::get<1>(jvp(errors)(theta, direction));
  });
}

Matrix complicated_objective(Vector theta, Matrix u, Skin skin, Indices corner, Matrix measured) {
  return complicated(theta, u, skin, corner, measured);
}
/// By each point's own place on its triangle, then by theta.
Jacobian complicated_jacobian(Vector theta, Matrix u, Skin skin, Indices corner, Matrix measured) {
  const auto errors = [&](Vector t, Matrix places) { return complicated(t, places, skin, corner, measured); };
  const Index points = u.dim(0);
  return by_directions(2 + theta.size(), points, [&](Index d) {
    const Vector direction = tabulate(theta.size(), [&](Index j) { return delta(j + 2, d); });
    const Matrix own = FOR(0, points, fill(Number(0.0), points, 2), [&](Index i, Matrix m) {
      return m.set(i, 0, delta(d, 0)).set(i, 1, delta(d, 1));
    });
    return std::get<1>(jvp(errors)(theta, u, direction, own));
  });
}

/// An input's numbers as the programs take them.
struct HandArguments {
  std::vector<double> base_relative, inverse_base_absolute, vertices, measured;
  std::vector<std::int64_t> parent, vertex;

  explicit HandArguments(const HandInput& in)
      : base_relative(flat(in.model.base_relative)),
        inverse_base_absolute(flat(in.model.inverse_base_absolute)),
        vertices(flat(in.model.vertices)),
        measured(flat(in.measured)),
        parent(in.model.parent.begin(), in.model.parent.end()) {
    for (const int c : in.correspondence) {
      if (!in.complicated())
        vertex.push_back(c);
      else
        vertex.insert(vertex.end(), in.model.triangles[static_cast<std::size_t>(c)].begin(),
                      in.model.triangles[static_cast<std::size_t>(c)].end());
    }
  }
  template <std::size_t N>
  static std::vector<double> flat(const std::vector<std::array<double, N>>& rows) {
    std::vector<double> all;
    for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
  }
};

/// The suite keeps Jacobians column by column.
std::vector<double> transposed(const std::vector<double>& rows, std::size_t columns) {
  std::vector<double> all;
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = j; i < rows.size(); i += columns) all.push_back(rows[i]);
  return all;
}

}  // namespace

std::vector<Form> hand_forms(const std::shared_ptr<const HandInput>& in, const std::string& problem,
                             int threads) {
  const auto a = std::make_shared<const HandArguments>(*in);
  const auto run = [=](const auto& f, const TensorView<double>& out, auto... u) {
    const std::tuple skin(matrix(a->base_relative, 16), matrix(a->inverse_base_absolute, 16),
                          std::span(a->parent), matrix(a->vertices, 3),
                          matrix(in->model.weights, in->model.bones()));
    f.into(out, std::span(in->theta), u..., skin, std::span(a->vertex), matrix(a->measured, 3));
  };
  const auto forms = [&](const auto& objective, const auto& jacobian, const auto& in_several,
                         std::size_t columns, auto... u) {
    const auto errors = std::make_shared<std::vector<double>>(3 * in->measured.size());
    const auto run_objective = [=] { run(objective, matrix(*errors, 3), u...); };
    const auto derivative = std::make_shared<std::vector<double>>(columns * errors->size());
    const auto forward = [=](const std::string& name, const auto& f) -> Form {
      const auto run_jacobian = [=] { run(f, matrix(*derivative, columns), u...); };
      return {name, run_jacobian, [=] {
                run_jacobian();
                return check_derivative(transposed(*derivative, columns), problem, differentiable(in));
              }};
    };
    std::vector<Form> all{{"objective", run_objective,
                           [=] { return run_objective(), check_objective(*errors, differentiable(in)); }},
                          forward("forward", jacobian)};
    if (threads > 1) all.push_back(forward(in_threads("forward", threads), in_several()));
    return all;
  };
  if (in->complicated()) {
    static const auto objective = compile(complicated_objective, model_options("hand_complicated"));
    static const auto jacobian = compile(complicated_jacobian, model_options("hand_complicated_jacobian"));
    const auto in_several = [&] {
      return compile(complicated_jacobian, model_options("hand_complicated_jacobian", threads));
    };
    return forms(objective, jacobian, in_several, 2 + in->theta.size(), matrix(in->u, 2));
  }
  static const auto objective = compile(simple_objective, model_options("hand_simple"));
  static const auto jacobian = compile(simple_jacobian, model_options("hand_simple_jacobian"));
  const auto in_several = [&] {
    return compile(simple_jacobian, model_options("hand_simple_jacobian", threads));
  };
  return forms(objective, jacobian, in_several, in->theta.size());
}

}  // namespace lantern::bench
