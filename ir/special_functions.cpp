// polygamma by recurrence and asymptotic expansion: step by step what generated code does
// (codegen/c/kernel_text.cpp), so that both give the same numbers.
#include "lantern/ir/special_functions.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace lantern::ir {

double polygamma(double n, double x) {
  static const double bernoulli[8] = {1.0 / 12,
                                      -1.0 / 720,
                                      1.0 / 30240,
                                      -1.0 / 1209600,
                                      1.0 / 47900160,
                                      -691.0 / 1307674368000.0,
                                      1.0 / 74724249600.0,
                                      -3617.0 / 10670622842880000.0};
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   inf = std::numeric_limits<double>::infinity();
  constexpr double pi = std::numbers::pi;
  if (n != std::floor(n) || n < 0 || n > 100 || x != x) return nan;
  const bool even = std::floor(n / 2) * 2 == n;
  if (x <= 0 && x == std::floor(x)) return even ? nan : inf;
  if (n == 0) {
    double sum = 0;
    if (x < 0) {
      sum = -pi / std::tan(pi * x);
      x = 1 - x;
    }
    for (; x < 15; x += 1) sum -= 1 / x;
    const double power = 1 / (x * x);
    double factorial = 1, term = power;
    sum += std::log(x) - 0.5 / x;
    for (int k = 0; k < 8; ++k) {
      sum -= bernoulli[k] * factorial * term;
      factorial *= (2 * k + 2) * (2 * k + 3);
      term *= power;
    }
    return sum;
  }
  if (n == 1 && x < 0) {
    const double s = std::sin(pi * x);
    return pi * pi / (s * s) - polygamma(1, 1 - x);
  }
  if (x < -1e6) return nan;
  double zeta = 0, factorial = 1;
  const double s = n + 1;
  for (; x < 15 + n; x += 1) zeta += std::pow(x, -s);
  zeta += std::pow(x, -n) / n + 0.5 * std::pow(x, -s);
  double term = s * std::pow(x, -s - 1);
  for (int k = 0; k < 8; ++k) {
    zeta += bernoulli[k] * term;
    term *= (s + 2 * k + 1) * (s + 2 * k + 2) / (x * x);
  }
  for (int k = 2; k <= n; ++k) factorial *= k;
  return even ? -factorial * zeta : factorial * zeta;
}

}  // namespace lantern::ir
