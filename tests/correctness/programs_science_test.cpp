// Simulations: bodies, pendulums, heat, molecules.
#include "program_check.hpp"

namespace lantern::test {
namespace {

template <class T>
using Element = std::remove_cvref_t<T>;

// n bodies, Euler; state: positions and velocities as arrays
TEST_CASE("programs: bodies that attract each other", "[programs]") {
  const auto staged = [](Vec x0, Vec v0, Vec mass, Int steps) {
    const Int n = mass.size();
    const auto [x, v] = FOR(0, steps, std::tuple(x0, v0), [&](Int, Vec x, Vec v) {
      const Vec a = tabulate(3 * n, [&](Int e) {
        const Int i = e / 3, c = e % 3;
        return total(n, [&](Int j) {
          const Num dx = x[3 * j] - x[3 * i], dy = x[3 * j + 1] - x[3 * i + 1],
                    dz = x[3 * j + 2] - x[3 * i + 2];
          const Num r2 = dx * dx + dy * dy + dz * dz + 0.01;
          return mass[j] * (x[3 * j + c] - x[3 * i + c]) / (r2 * sqrt(r2));
        });
      });
      const Vec v2 = tabulate(3 * n, [&](Int e) { return v[e] + 0.01 * a[e]; });
      const Vec x2 = tabulate(3 * n, [&](Int e) { return x[e] + 0.01 * v2[e]; });
      return std::tuple(x2, v2);
    });
    return total(3 * n, [&](Int e) { return x[e] * x[e] + 0.5 * mass[e / 3] * v[e] * v[e]; });
  };
  const auto plain = [](const auto& x0, const auto& v0, const auto& mass, i64 steps) {
    using T = Element<decltype(x0[0])>;
    const i64 n = static_cast<i64>(mass.size());
    auto x = x0, v = v0;
    for (i64 s = 0; s < steps; ++s) {
      std::vector<T> a(3 * n);
      for (i64 i = 0; i < n; ++i)
        for (i64 j = 0; j < n; ++j) {
          const T dx = x[3 * j] - x[3 * i], dy = x[3 * j + 1] - x[3 * i + 1],
                  dz = x[3 * j + 2] - x[3 * i + 2];
          const T r2 = dx * dx + dy * dy + dz * dz + 0.01;
          const T w = mass[j] / (r2 * sqrt(r2));
          a[3 * i] += w * dx, a[3 * i + 1] += w * dy, a[3 * i + 2] += w * dz;
        }
      for (i64 e = 0; e < 3 * n; ++e) v[e] += 0.01 * a[e], x[e] += 0.01 * v[e];
    }
    T s = 0.0;
    for (i64 e = 0; e < 3 * n; ++e) s += x[e] * x[e] + 0.5 * mass[e / 3] * v[e] * v[e];
    return s;
  };
  auto p = checked<double(Array<double>, Array<double>, Array<double>, i64), 0, 1>(staged, plain,
                                                                                   {.lanes = false});
  for (auto [n, s] :
       std::vector<std::pair<i64, i64>>{{0, 3}, {1, 2}, {3, 0}, {3, 5}, {7, 3}, {33, 2}, {33, 20}})
    p(numbers(3 * n, 0.2, 2.0), numbers(3 * n, 0, 0.3, 0.9), numbers(n, 1.0), s);

  // matrix state, pairs computed once, velocity Verlet
  const auto staged2 = [](Mat x0, Mat v0, Vec mass, Int steps) {
    const Int n = mass.size();
    const auto force = [&](Mat x) {
      return FOR(0, n, fill(Num(0.0), n, 3), [&](Int i, Mat f) {
        const auto [a, b, c] =
            FOR(0, n, std::tuple(Num(0.0), Num(0.0), Num(0.0)), [&](Int j, Num a, Num b, Num c) {
              const Num dx = x(j, 0) - x(i, 0), dy = x(j, 1) - x(i, 1), dz = x(j, 2) - x(i, 2);
              const Num r2 = dx * dx + dy * dy + dz * dz + 0.01;
              const Num w = mass[j] / (r2 * sqrt(r2));
              return std::tuple(a + w * dx, b + w * dy, c + w * dz);
            });
        return f.set(i, 0, a).set(i, 1, b).set(i, 2, c);
      });
    };
    const auto [x, v] = FOR(0, steps, std::tuple(x0, v0), [&](Int, Mat x, Mat v) {
      const Mat f = force(x);
      const Mat v2 = v + 0.01 * f;
      return std::tuple(Mat(x + 0.01 * v2), v2);
    });
    return sum(x * x) + 0.5 * total(n, [&](Int i) {
                          return mass[i] * (v(i, 0) * v(i, 0) + v(i, 1) * v(i, 1) + v(i, 2) * v(i, 2));
                        });
  };
  const auto plain2 = [plain](const auto& x0, const auto& v0, const auto& mass, i64 steps) {
    return plain(x0.data, v0.data, mass, steps);
  };
  auto q = checked<double(Matrix, Matrix, Array<double>, i64), 0, 1>(staged2, plain2, {.lanes = false});
  for (auto [n, s] : std::vector<std::pair<i64, i64>>{{0, 3}, {1, 2}, {3, 5}, {7, 3}, {33, 2}, {100, 5}})
    q(grid(n, 3, 0.2, 2.0), grid(n, 3, 0, 0.3, 0.9), numbers(n, 1.0), s);
}

// RK4 of a scalar pendulum with parameters
template <class T>
struct State {
  T angle, speed;
};
TEST_CASE("programs: a pendulum by Runge and Kutta", "[programs]") {
  const auto staged = [](Num angle, Num speed, Num length, Num damping, Int steps) {
    const auto f = [&](const State<Num>& s) {
      return State<Num>{s.speed, -9.81 / length * sin(s.angle) - damping * s.speed};
    };
    const auto s = FOR(0, steps, State<Num>{angle, speed}, [&](Int, State<Num> s) {
      const Num h = 0.01;
      const auto along = [&](const State<Num>& k, const Num& t) {
        return State<Num>{s.angle + t * k.angle, s.speed + t * k.speed};
      };
      const auto k1 = f(s), k2 = f(along(k1, 0.5 * h)), k3 = f(along(k2, 0.5 * h)), k4 = f(along(k3, h));
      return State<Num>{s.angle + h / 6.0 * (k1.angle + 2.0 * k2.angle + 2.0 * k3.angle + k4.angle),
                        s.speed + h / 6.0 * (k1.speed + 2.0 * k2.speed + 2.0 * k3.speed + k4.speed)};
    });
    return s.angle * s.angle + 0.1 * s.speed;
  };
  const auto plain = [](auto angle, auto speed, auto length, auto damping, i64 steps) {
    using T = decltype(angle);
    const auto f = [&](const State<T>& s) {
      return State<T>{s.speed, -9.81 / length * sin(s.angle) - damping * s.speed};
    };
    State<T> s{angle, speed};
    for (i64 i = 0; i < steps; ++i) {
      const double h = 0.01;
      const auto along = [&](const State<T>& k, double t) {
        return State<T>{s.angle + t * k.angle, s.speed + t * k.speed};
      };
      const auto k1 = f(s), k2 = f(along(k1, 0.5 * h)), k3 = f(along(k2, 0.5 * h)), k4 = f(along(k3, h));
      s = {s.angle + h / 6.0 * (k1.angle + 2.0 * k2.angle + 2.0 * k3.angle + k4.angle),
           s.speed + h / 6.0 * (k1.speed + 2.0 * k2.speed + 2.0 * k3.speed + k4.speed)};
    }
    return s.angle * s.angle + 0.1 * s.speed;
  };
  auto p =
      checked<double(double, double, double, double, i64), 0, 1, 2, 3>(staged, plain, {.tolerance = 1e-9});
  for (i64 n : {0, 1, 7, 100, 1000, 20000}) p(0.7, 0.1, 1.2, 0.05, n);
}

// chain of pendulums (coupled oscillators), symplectic Euler
TEST_CASE("programs: a chain of pendulums", "[programs]") {
  const auto staged = [](Vec x0, Vec k, Int steps) {
    const Int n = x0.size();
    const auto [x, v] = FOR(0, steps, std::tuple(x0, fill(Num(0.0), n)), [&](Int, Vec x, Vec v) {
      const Vec v2 = FOR(0, n, v, [&](Int i, Vec w) {
        const Num left = IF(i > 0, [&] { return sin(x[i - 1] - x[i]); }, [&] { return Num(0.0); });
        const Num right = IF(i + 1 < n, [&] { return sin(x[i + 1] - x[i]); }, [&] { return -sin(x[i]); });
        return w.set(i, w[i] + 0.05 * k[i] * (left + right));
      });
      const Vec x2 = FOR(0, n, x, [&](Int i, Vec y) { return y.set(i, y[i] + 0.05 * v2[i]); });
      return std::tuple(x2, v2);
    });
    return total(n, [&](Int i) { return x[i] * x[i] + v[i] * v[i]; });
  };
  const auto plain = [](const auto& x0, const auto& k, i64 steps) {
    using T = Element<decltype(x0[0])>;
    const std::size_t n = x0.size();
    auto x = x0;
    std::vector<T> v(n);
    for (i64 s = 0; s < steps; ++s) {
      for (std::size_t i = 0; i < n; ++i) {
        const T left = i > 0 ? T(sin(x[i - 1] - x[i])) : T(0.0),
                right = i + 1 < n ? T(sin(x[i + 1] - x[i])) : T(-sin(x[i]));
        v[i] += 0.05 * k[i] * (left + right);
      }
      for (std::size_t i = 0; i < n; ++i) x[i] += 0.05 * v[i];
    }
    T s = 0.0;
    for (std::size_t i = 0; i < n; ++i) s += x[i] * x[i] + v[i] * v[i];
    return s;
  };
  auto p = checked<double(Array<double>, Array<double>, i64), 0, 1>(staged, plain);
  for (auto [n, s] : std::vector<std::pair<i64, i64>>{
           {0, 3}, {1, 2}, {3, 0}, {3, 5}, {7, 3}, {31, 10}, {33, 2}, {100, 100}})
    p(numbers(n, 0.2, 1.0), numbers(n, 1.0), s);
}

// heat: 1-D with array swap
TEST_CASE("programs: heat in a rod, a ring and a plate", "[programs]") {
  const auto staged = [](Vec u0, Num c, Int steps) {
    const Int n = u0.size();
    const Vec u = FOR(0, steps, u0, [&](Int, Vec u) {
      return FOR(1, n - 1, u,
                 [&](Int i, Vec w) { return w.set(i, u[i] + c * (u[i - 1] - 2.0 * u[i] + u[i + 1])); });
    });
    return total(n, [&](Int i) { return u[i] * u[i]; });
  };
  const auto plain = [](const auto& u0, auto c, i64 steps) {
    using T = decltype(c);
    auto u = u0, w = u0;
    const i64 n = static_cast<i64>(u0.size());
    for (i64 s = 0; s < steps; ++s) {
      for (i64 i = 1; i < n - 1; ++i) w[i] = u[i] + c * (u[i - 1] - 2.0 * u[i] + u[i + 1]);
      std::swap(u, w);
    }
    T s = 0.0;
    for (i64 i = 0; i < n; ++i) s += u[i] * u[i];
    return s;
  };
  auto p = checked<double(Array<double>, double, i64), 0, 1>(staged, plain);
  for (auto [n, s] : std::vector<std::pair<i64, i64>>{
           {0, 3}, {1, 2}, {2, 2}, {3, 0}, {3, 5}, {7, 3}, {31, 10}, {33, 2}, {100, 30}, {1000, 10}})
    p(numbers(n, 0.2, 1.0), 0.2, s);
  // periodic borders by remainder
  const auto ring = [](Vec u0, Num c, Int steps) {
    const Int n = u0.size();
    const Vec u = FOR(0, steps, u0, [&](Int, Vec u) {
      return tabulate(n,
                      [&](Int i) { return u[i] + c * (u[(i + n - 1) % n] - 2.0 * u[i] + u[(i + 1) % n]); });
    });
    return total(n, [&](Int i) { return u[i] * u[i]; });
  };
  const auto ring_plain = [](const auto& u0, auto c, i64 steps) {
    using T = decltype(c);
    auto u = u0, w = u0;
    const i64 n = static_cast<i64>(u0.size());
    for (i64 s = 0; s < steps; ++s) {
      for (i64 i = 0; i < n; ++i) w[i] = u[i] + c * (u[(i + n - 1) % n] - 2.0 * u[i] + u[(i + 1) % n]);
      std::swap(u, w);
    }
    T s = 0.0;
    for (i64 i = 0; i < n; ++i) s += u[i] * u[i];
    return s;
  };
  auto r = checked<double(Array<double>, double, i64), 0, 1>(ring, ring_plain);
  for (auto [n, s] : std::vector<std::pair<i64, i64>>{
           {0, 3}, {1, 2}, {2, 2}, {3, 0}, {3, 5}, {7, 3}, {31, 10}, {33, 2}, {100, 30}, {1000, 10}})
    r(numbers(n, 0.2, 1.0), 0.2, s);
  // 2-D, conductivity field
  const auto staged2 = [](Mat u0, Mat k, Int steps) {
    const Int m = u0.dim(0), n = u0.dim(1);
    const Mat u = FOR(0, steps, u0, [&](Int, Mat u) {
      return FOR(1, m - 1, u, [&](Int i, Mat w) {
        return FOR(1, n - 1, w, [&](Int j, Mat w) {
          return w.set(
              i, j,
              u(i, j) + k(i, j) * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4.0 * u(i, j)));
        });
      });
    });
    return sum(u * u);
  };
  const auto plain2 = [](const auto& u0, const auto& k, i64 steps) {
    using T = Element<decltype(u0.data[0])>;
    auto u = u0, w = u0;
    for (i64 s = 0; s < steps; ++s) {
      for (i64 i = 1; i < u.rows - 1; ++i)
        for (i64 j = 1; j < u.cols - 1; ++j)
          w(i, j) =
              u(i, j) + k(i, j) * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4.0 * u(i, j));
      std::swap(u, w);
    }
    T s = 0.0;
    for (const T& x : u.data) s += x * x;
    return s;
  };
  auto q = checked<double(Matrix, Matrix, i64), 0, 1>(staged2, plain2, {.lanes = false});
  for (auto [m, n, s] : std::vector<std::tuple<i64, i64, i64>>{
           {0, 0, 3}, {1, 1, 2}, {3, 3, 2}, {2, 5, 2}, {3, 7, 5}, {7, 3, 3}, {33, 31, 4}, {50, 60, 6}})
    q(grid(m, n, 0.2, 1.0), grid(m, n, 0.1, 0.05), s);
}

// Lennard-Jones energy with a cutoff
TEST_CASE("programs: Lennard-Jones energy with a cutoff", "[programs]") {
  const auto staged = [](Vec x, Num cutoff) {
    const Int n = x.size() / 3;
    return total(n, [&](Int i) {
      return total(i + 1, n, [&](Int j) {
        const Num dx = x[3 * i] - x[3 * j], dy = x[3 * i + 1] - x[3 * j + 1],
                  dz = x[3 * i + 2] - x[3 * j + 2];
        const Num r2 = dx * dx + dy * dy + dz * dz;
        return IF(
            r2 < cutoff * cutoff,
            [&] {
              const Num s = 1.0 / r2, s6 = s * s * s;
              return 4.0 * s6 * (s6 - 1.0);
            },
            [&] { return Num(0.0); });
      });
    });
  };
  const auto plain = [](const auto& x, double cutoff) {
    using T = Element<decltype(x[0])>;
    T e = 0.0;
    const i64 n = static_cast<i64>(x.size()) / 3;
    for (i64 i = 0; i < n; ++i)
      for (i64 j = i + 1; j < n; ++j) {
        const T dx = x[3 * i] - x[3 * j], dy = x[3 * i + 1] - x[3 * j + 1], dz = x[3 * i + 2] - x[3 * j + 2];
        const T r2 = dx * dx + dy * dy + dz * dz;
        if (value(r2) < cutoff * cutoff) {
          const T s = 1.0 / r2, s6 = s * s * s;
          e += 4.0 * s6 * (s6 - 1.0);
        }
      }
    return e;
  };
  auto p = checked<double(Array<double>, double), 0>(staged, plain);
  // Molecules on a cubic lattice, each a little beside its place.
  for (const i64 n : {0, 1, 2, 3, 7, 31, 40, 100}) {
    std::vector<double> x = numbers(3 * n, 0.0, 0.1, 2.3);
    for (i64 i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(3 * i);
      x[at] += 1.1 * static_cast<double>(i % 8);
      x[at + 1] += 1.1 * static_cast<double>(i / 8 % 8);
      x[at + 2] += 1.1 * static_cast<double>(i / 64);
    }
    p(x, 2.5);
  }
}

}  // namespace
}  // namespace lantern::test
