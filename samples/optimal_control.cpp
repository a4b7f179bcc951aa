// Optimal control: the least force that swings a pendulum on a cart from hanging to standing.
//
// The path is cut into steps. Its unknowns are state and force at each point of time, and the multipliers of
// the equations of motion between them. All conditions of optimality together say that the Lagrangian's
// gradient by all unknowns is zero; Newton's method asks for its Hessian, in which a point knows its
// neighbours only. The sparsity is found once, by running the program on sets of element numbers; the entries
// then take eight passes, however many points there are.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <lantern/lantern.hpp>
#include <numeric>
#include <vector>

#include "support.hpp"

using namespace lantern;

using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;

constexpr int64_t steps = 120, block = 9;  // of each point: 4 numbers of the state, the force, 4 multipliers
constexpr int64_t unknowns = 4 + block * (steps + 1);
constexpr double duration = 2.0, h = duration / steps, distance = 1.0, pi = 3.14159265358979323846;

/// Position of the cart, angle of the pendulum (0: hanging), and their speeds.
template <class T>
using State = std::array<T, 4>;

/// The equations of motion, for numbers and for Reps.
template <class T>
State<T> rates(const State<T>& s, const T& force) {
  using std::cos, std::sin;
  constexpr double cart = 1.0, bob = 0.3, length = 0.5, gravity = 9.81;
  const T c = cos(s[1]), d = sin(s[1]), pull = bob * length * d * s[3] * s[3], all = cart + bob * d * d;
  return {s[2], s[3], (pull + force + bob * gravity * c * d) / all,
          -1.0 * (pull * c + force * c + (cart + bob) * gravity * d) / (length * all)};
}

State<D> four(A z, I at) { return {z[at], z[at + 1], z[at + 2], z[at + 3]}; }

/// The squared force, and multipliers times what is missing: at the start, from point to point, at the end.
D lagrangian(A z) {
  State<D> s = four(z, 4), f = rates(s, z[8]);
  D sum = 0.0;
  for (int i = 0; i < 4; ++i) sum += z[i] * s[i];
  for (I k = 0; k < steps; ++k) {
    I at = 4 + block * k;
    D force = z[at + 4], next_force = z[at + block + 4];
    sum += 0.5 * h * (force * force + next_force * next_force);
    State<D> multiplier = four(z, at + 5), next = four(z, at + block), f_next = rates(next, next_force);
    for (int i = 0; i < 4; ++i) sum += multiplier[i] * (next[i] - s[i] - 0.5 * h * (f[i] + f_next[i]));
    s = next, f = f_next;
  }
  State<D> multiplier = four(z, unknowns - 4);
  const double end[] = {distance, pi, 0.0, 0.0};
  for (int i = 0; i < 4; ++i) sum += multiplier[i] * (s[i] - end[i]);
  return sum;
}

LANTERN_FUNCTION(objective, lagrangian)
LANTERN_FUNCTION(gradient, value_and_grad(lagrangian))
LANTERN_FUNCTION(hessian_entries, sparse_hessian(lagrangian))

using Vector = std::vector<double>;

/// The solution of a x = b: Gauss's elimination with pivots, within the band.
Vector solve(const Sparsity& s, const Vector& entries, Vector b) {
  const int64_t n = s.rows;
  int64_t width = 0;
  std::vector<Vector> a(b.size(), Vector(b.size()));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t e = s.row_start[i]; e < s.row_start[i + 1]; ++e) {
      a[i][s.column[e]] = entries[e];
      width = std::max(width, std::abs(i - s.column[e]));
    }
  const auto right_of = [&](int64_t k) { return std::min(n, k + 2 * width + 1); };
  for (int64_t k = 0; k < n; ++k) {
    const auto larger = [&](const Vector& x, const Vector& y) { return std::abs(x[k]) < std::abs(y[k]); };
    const auto end = a.begin() + std::min(n, k + width + 1);
    const int64_t pivot = std::max_element(a.begin() + k, end, larger) - a.begin();
    std::swap(a[k], a[pivot]), std::swap(b[k], b[pivot]);
    for (int64_t i = k + 1; i < end - a.begin(); ++i) {
      const double f = a[i][k] / a[k][k];
      for (int64_t j = k; j < right_of(k); ++j) a[i][j] -= f * a[k][j];
      b[i] -= f * b[k];
    }
  }
  for (int64_t k = n; k-- > 0; b[k] /= a[k][k])
    for (int64_t j = k + 1; j < right_of(k); ++j) b[k] -= a[k][j] * b[j];
  return b;
}

double norm(const Vector& v) { return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0)); }

/// Where cart and pendulum get with the forces of z, by a million small steps.
State<double> simulated(const Vector& z) {
  constexpr int64_t fine = 1'000'000;
  State<double> s{};
  for (int64_t i = 0; i < fine; ++i) {
    const double t = double(i) / fine * steps;
    const int64_t k = int64_t(t), at = 8 + block * k;
    const State<double> f = rates(s, z[at] + (t - k) * (z[at + block] - z[at]));
    for (int j = 0; j < 4; ++j) s[j] += duration / fine * f[j];
  }
  return s;
}

int main() {
  Vector z(unknowns, 0.0);  // a straight line to begin with
  for (int64_t k = 0; k <= steps; ++k) {
    z[4 + block * k] = distance * k / steps, z[5 + block * k] = pi * k / steps;
    z[6 + block * k] = distance / duration, z[7 + block * k] = pi / duration;
  }
  const Sparsity s = hessian_sparsity(lagrangian)(z);
  fmt::print("Hessian: {} entries of {} x {}, by {} passes\n", s.column.size(), s.rows, s.columns,
             s.forward + s.reverse);

  // Newton's method: of each step as much as makes the gradient smaller.
  const auto slope = [](const Vector& at) { return std::get<1>(gradient(at)); };
  int iterations = 0;
  Vector g = slope(z);
  for (; norm(g) > 1e-9 && iterations < 50; ++iterations) {
    const Vector step = solve(s, hessian_entries(z, s), g);
    Vector next;
    double share = 2;
    do {
      next = z, share *= 0.5;
      for (int64_t i = 0; i < unknowns; ++i) next[i] -= share * step[i];
    } while (norm(slope(next)) > (1 - 0.1 * share) * norm(g) && share > 1e-3);
    z = next, g = slope(z);
  }
  const State<double> end = simulated(z);
  fmt::print("{} iterations: gradient {:.0e}, cost {:.3f}; cart at {:.3f}, pendulum at {:.3f}\n", iterations,
             norm(g), objective(z), end[0], end[1]);
  const double unit = seconds([&] { objective(z); });
  fmt::print("gradient / objective: {:.1f}\n", seconds([&] { gradient(z); }) / unit);
  if (norm(g) < 1e-9 && std::abs(objective(z) - 58.9) < 0.2 && std::abs(end[1] - pi) < 0.1) return 0;
  fmt::print("expected the pendulum to stand\n");
  return 1;
}
