// Grids that change step by step. Those after PolyBench are tensors; with boundaries and the wave they are
// arrays with indices i * n + j.
#include "kernels.hpp"
#include "reference/kernels.hpp"

namespace lantern::bench {
namespace {

Number jacobi_1d(Vector a, Index steps) {
  const Index n = a.size();
  const auto step = [&](const Vector& from, Vector to) {
    FOR(1, n - 1, [&](Index i) { to = to.set(i, 0.33333 * (from[i - 1] + from[i] + from[i + 1])); });
    return to;
  };
  Vector b = a;
  FOR(0, steps, [&](Index) {
    b = step(a, b);
    a = step(b, a);
  });
  return sum(a * a);
}

Number jacobi_2d(Matrix a, Index steps) {
  const Index n = a.dim(0);
  const auto step = [&](const Matrix& from, Matrix to) {
    FOR(1, n - 1, [&](Index i) {
      FOR(1, n - 1, [&](Index j) {
        to = to.set(i, j,
                    0.2 * (from(i, j) + from(i, j - 1) + from(i, j + 1) + from(i + 1, j) + from(i - 1, j)));
      });
    });
    return to;
  };
  Matrix b = a;
  FOR(0, steps, [&](Index) {
    b = step(a, b);
    a = step(b, a);
  });
  return sum(a * a);
}

Number heat_3d(Volume a, Index steps) {
  const Index n = a.dim(0);
  const auto step = [&](const Volume& from, Volume to) {
    FOR(1, n - 1, [&](Index i) {
      FOR(1, n - 1, [&](Index j) {
        FOR(1, n - 1, [&](Index k) {
          to = to.set(i, j, k,
                      0.125 * (from(i + 1, j, k) - 2.0 * from(i, j, k) + from(i - 1, j, k)) +
                          0.125 * (from(i, j + 1, k) - 2.0 * from(i, j, k) + from(i, j - 1, k)) +
                          0.125 * (from(i, j, k + 1) - 2.0 * from(i, j, k) + from(i, j, k - 1)) +
                          from(i, j, k));
        });
      });
    });
    return to;
  };
  Volume b = a;
  FOR(0, steps, [&](Index) {
    b = step(a, b);
    a = step(b, a);
  });
  return sum(a * a);
}

/// In place: an element's new value is made of new ones above and to the left.
Number seidel_2d(Matrix a, Index steps) {
  const Index n = a.dim(0);
  FOR(0, steps, [&](Index) {
    FOR(1, n - 1, [&](Index i) {
      FOR(1, n - 1, [&](Index j) {
        a = a.set(i, j,
                  (a(i - 1, j - 1) + a(i - 1, j) + a(i - 1, j + 1) + a(i, j - 1) + a(i, j) + a(i, j + 1) +
                   a(i + 1, j - 1) + a(i + 1, j) + a(i + 1, j + 1)) /
                      9.0);
      });
    });
  });
  return sum(a * a);
}

Number fdtd_2d(Matrix ex, Matrix ey, Matrix hz, Vector source) {
  const Index m = hz.dim(0), n = hz.dim(1);
  FOR(0, source.size(), [&](Index t) {
    FOR(0, n, [&](Index j) { ey = ey.set(0, j, source[t]); });
    FOR(1, m, [&](Index i) {
      FOR(0, n, [&](Index j) { ey = ey.set(i, j, ey(i, j) - 0.5 * (hz(i, j) - hz(i - 1, j))); });
    });
    FOR(0, m, [&](Index i) {
      FOR(1, n, [&](Index j) { ex = ex.set(i, j, ex(i, j) - 0.5 * (hz(i, j) - hz(i, j - 1))); });
    });
    FOR(0, m - 1, [&](Index i) {
      FOR(0, n - 1, [&](Index j) {
        const Number curl = ex(i, j + 1) - ex(i, j) + ey(i + 1, j) - ey(i, j);
        hz = hz.set(i, j, hz(i, j) - 0.7 * curl);
      });
    });
  });
  return sum(hz * hz);
}

/// Phases that separate, on a torus.
Number periodic(Vector start, Index n, Index steps) {
  const Vector last = FOR(0, steps, start, [&](Index, Vector u) {
    Vector next = fill(Number(0.0), n * n);
    FOR(0, n, [&](Index i) {
      const Index above = select(i == 0, n - 1, i - 1), below = select(i == n - 1, 0, i + 1);
      FOR(0, n, [&](Index j) {
        const Index left = select(j == 0, n - 1, j - 1), right = select(j == n - 1, 0, j + 1);
        const Number v = u[i * n + j];
        const Number spread =
            u[above * n + j] + u[below * n + j] + u[i * n + left] + u[i * n + right] - 4.0 * v;
        next = next.set(i * n + j, v + 0.1 * spread + 0.05 * (v - v * v * v));
      });
    });
    return next;
  });
  return sum(last * last);
}

/// Heat in a plate that loses none at its edges.
Number clamped(Vector start, Vector conductivity, Index n, Index steps) {
  const Vector last = FOR(0, steps, start, [&](Index, Vector u) {
    Vector next = fill(Number(0.0), n * n);
    FOR(0, n, [&](Index i) {
      FOR(0, n, [&](Index j) {
        const Index above = max(i - 1, 0), below = min(i + 1, n - 1);
        const Index left = max(j - 1, 0), right = min(j + 1, n - 1);
        const Number v = u[i * n + j];
        const Number spread =
            u[above * n + j] + u[below * n + j] + u[i * n + left] + u[i * n + right] - 4.0 * v;
        next = next.set(i * n + j, v + conductivity[i * n + j] * spread);
      });
    });
    return next;
  });
  return sum(last * last);
}

/// The wave equation, of whose steps reverse mode keeps 20: what comes next takes the place of what was
/// before.
Number wave(Vector start, Vector speed, Index n, Index steps) {
  const auto [before, last] =
      FOR(0, steps, std::tuple(start, start),
          [&](Index, Vector u, Vector v) {
            FOR(1, n - 1, [&](Index i) {
              FOR(1, n - 1, [&](Index j) {
                const Number c = speed[i * n + j];
                const Number spread = v[(i - 1) * n + j] + v[(i + 1) * n + j] + v[i * n + j - 1] +
                                      v[i * n + j + 1] - 4.0 * v[i * n + j];
                u = u.set(i * n + j, 2.0 * v[i * n + j] - u[i * n + j] + c * c * spread);
              });
            });
            return std::tuple(v, u);
          },
          {.checkpoints = 20});
  return sum(last * last);
}

}  // namespace

std::vector<Kernel> stencil_kernels(const Sizes& of) {
  namespace plain = reference;
  std::vector<Kernel> all;
  const std::int64_t steps = of(10, 100, 20);
  {
    const std::int64_t n = of(400, 4'000, 1'000'000);
    all.push_back(kernel(
        "jacobi_1d", by(steps, n), jacobi_1d,
        [=](const double* a, std::int64_t count) { return plain::jacobi_1d(n, count, a); }, uniform(n),
        steps));
  }
  {
    const std::int64_t n = of(40, 250, 2'000);
    all.push_back(kernel(
        "jacobi_2d", by(steps, n, n), jacobi_2d,
        [=](const double* a, std::int64_t count) { return plain::jacobi_2d(n, count, a); },
        uniform_grid({n, n}), steps));
  }
  {
    const std::int64_t n = of(12, 40, 200);
    all.push_back(kernel(
        "heat_3d", by(steps, n, n, n), heat_3d,
        [=](const double* a, std::int64_t count) { return plain::heat_3d(n, count, a); },
        uniform_grid({n, n, n}), steps));
  }
  {
    const std::int64_t n = of(40, 200, 1'000), few = 10;
    all.push_back(kernel(
        "seidel_2d", by(few, n, n), seidel_2d,
        [=](const double* a, std::int64_t count) { return plain::seidel_2d(n, count, a); },
        uniform_grid({n, n}), few));
  }
  {
    const std::int64_t m = of(30, 200, 1'500), n = of(40, 240, 1'600);
    all.push_back(kernel(
        "fdtd_2d", by(steps, m, n), fdtd_2d, [=](auto... a) { return plain::fdtd_2d(m, n, steps, a...); },
        uniform_grid({m, n}), uniform_grid({m, n}), uniform_grid({m, n}), uniform(steps)));
  }
  {
    const std::int64_t n = of(32, 200, 1'500), some = of(8, 40, 10);
    all.push_back(kernel(
        "periodic", by(some, n, n), periodic,
        [](const double* u, std::int64_t size, std::int64_t count) {
          return plain::periodic(size, count, u);
        },
        uniform(n * n), n, some));
    all.push_back(kernel(
        "clamped", by(some, n, n), clamped,
        [](const double* u, const double* c, std::int64_t size, std::int64_t count) {
          return plain::clamped(size, count, u, c);
        },
        uniform(n * n), uniform(n * n, 0.05, 0.2), n, some));
    const std::int64_t many = of(30, 200, 30);
    all.push_back(kernel(
        "wave", by(many, n, n), wave,
        [](const double* u, const double* c, std::int64_t size, std::int64_t count) {
          return plain::wave(size, count, u, c);
        },
        uniform(n * n), uniform(n * n, 0.2, 0.6), n, many));
  }
  return all;
}

}  // namespace lantern::bench
