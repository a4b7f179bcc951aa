#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace lantern::bench::reference {
namespace {

using Values = std::vector<double>;

}  // namespace

double bodies(Size n, Size steps, const double* x0, const double* v0, const double* mass) {
  Values x(x0, x0 + 3 * n), v(v0, v0 + 3 * n);
  for (Size t = 0; t < steps; ++t) {
    for (Size i = 0; i < n; ++i) {
      double ax = 0, ay = 0, az = 0;
      for (Size j = 0; j < n; ++j) {
        const double dx = x[3 * j] - x[3 * i], dy = x[3 * j + 1] - x[3 * i + 1],
                     dz = x[3 * j + 2] - x[3 * i + 2];
        const double squared = dx * dx + dy * dy + dz * dz + 0.01;
        const double pull = mass[j] / (squared * std::sqrt(squared));
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
      }
      v[3 * i] += 0.001 * ax;
      v[3 * i + 1] += 0.001 * ay;
      v[3 * i + 2] += 0.001 * az;
    }
    for (Size e = 0; e < 3 * n; ++e) x[e] += 0.001 * v[e];
  }
  double sum = 0;
  for (Size e = 0; e < 3 * n; ++e) sum += x[e] * x[e] + v[e] * v[e];
  return sum;
}

double lennard_jones(Size n, const Size* start, const Size* neighbour, const double* x) {
  constexpr double cutoff = 6.25, at_cutoff = -0.016316891136;
  double energy = 0;
  for (Size i = 0; i < n; ++i)
    for (Size k = start[i]; k < start[i + 1]; ++k) {
      const Size j = neighbour[k];
      const double dx = x[3 * i] - x[3 * j], dy = x[3 * i + 1] - x[3 * j + 1],
                   dz = x[3 * i + 2] - x[3 * j + 2];
      const double squared = dx * dx + dy * dy + dz * dz;
      if (squared < cutoff) {
        const double inverse = 1.0 / squared, six = inverse * inverse * inverse;
        energy += 4.0 * six * (six - 1.0) - at_cutoff;
      }
    }
  return energy;
}

double histogram(Size n, Size bins, const Size* bin, const double* weight) {
  Values h(bins);
  for (Size i = 0; i < n; ++i) h[bin[i]] += weight[i];
  double sum = 0;
  for (const double x : h) sum += x * x;
  return sum;
}

double prefix_sum(Size n, const double* x) {
  Values s(n);
  double sum = 0;
  for (Size i = 0; i < n; ++i) {
    sum += x[i];
    s[i] = sum;
  }
  double squares = 0;
  for (const double y : s) squares += y * y;
  return squares;
}

double hidden_markov(Size states, Size symbols, Size steps, const double* first, const double* next,
                     const double* emit, const Size* seen) {
  Values now(states), after(states);
  for (Size i = 0; i < states; ++i) now[i] = first[i] * emit[i * symbols + seen[0]];
  double likelihood = 0;
  for (Size t = 1; t < steps; ++t) {
    double scale = 0;
    for (Size j = 0; j < states; ++j) {
      double sum = 0;
      for (Size i = 0; i < states; ++i) sum += now[i] * next[i * states + j];
      after[j] = sum * emit[j * symbols + seen[t]];
      scale += after[j];
    }
    for (Size j = 0; j < states; ++j) after[j] /= scale;
    likelihood += std::log(scale);
    std::swap(now, after);
  }
  return likelihood;
}

double fourier(Size n, const Size* reversed, const double* re0, const double* im0, const double* weight) {
  Values re(n), im(n), c(n / 2), s(n / 2);
  for (Size i = 0; i < n; ++i) {
    re[i] = re0[reversed[i]];
    im[i] = im0[reversed[i]];
  }
  for (Size k = 0; k < n / 2; ++k) {
    const double angle = -2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    c[k] = std::cos(angle);
    s[k] = std::sin(angle);
  }
  for (Size half = 1; half < n; half *= 2)
    for (Size begin = 0; begin < n; begin += 2 * half)
      for (Size k = 0; k < half; ++k) {
        const double wr = c[k * (n / (2 * half))], wi = s[k * (n / (2 * half))];
        const Size p = begin + k, q = p + half;
        const double tr = wr * re[q] - wi * im[q], ti = wr * im[q] + wi * re[q];
        re[q] = re[p] - tr;
        im[q] = im[p] - ti;
        re[p] += tr;
        im[p] += ti;
      }
  double power = 0;
  for (Size i = 0; i < n; ++i) power += weight[i] * (re[i] * re[i] + im[i] * im[i]);
  return power;
}

}  // namespace lantern::bench::reference
