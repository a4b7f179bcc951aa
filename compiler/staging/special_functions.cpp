// polygamma by recurrence and asymptotic expansion.
#include "lantern/compiler/staging/special_functions.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace lantern {

double polygamma(double order, double x) {
  static const double bernoulli[] = {1.0 / 6,        -1.0 / 30,     1.0 / 42,      -1.0 / 30,        5.0 / 66,
                                     -691.0 / 2730,  7.0 / 6,       -3617.0 / 510, 43867.0 / 798,    -174611.0 / 330,
                                     854513.0 / 138, -236364091.0 / 2730};
  if (x <= 0 && x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
  const int n = static_cast<int>(order);
  if (n == 0) {
    if (x < -8) return polygamma(0, 1 - x) - std::numbers::pi / std::tan(std::numbers::pi * x);
    double sum = 0;
    for (; x < 16; x += 1) sum -= 1 / x;
    const double w = 1 / (x * x);
    double power = w;
    for (int k = 0; k < 8; ++k, power *= w) sum -= bernoulli[k] / (2.0 * (k + 1)) * power;
    return sum + std::log(x) - 0.5 / x;
  }
  // (-1)^(n+1) psi_n(x) = n! sum_k (x+k)^-(n+1): terms up to a large x, then Euler-Maclaurin.
  const double factorial = std::tgamma(n + 1.0);
  double sum = 0;
  for (; x < 20 + n; x += 1) sum += std::pow(x, -(n + 1.0));
  double tail = std::pow(x, -static_cast<double>(n)) / n + 0.5 * std::pow(x, -(n + 1.0));
  // Terms B_2k (2k+n-1)! / ((2k)! n!) x^-(2k+n), built up by ratios to stay in range.
  double ratio = (n + 1.0) / 2.0 * std::pow(x, -(n + 2.0));
  for (int k = 1; k <= 12; ++k) {
    tail += bernoulli[k - 1] * ratio;
    ratio *= (2.0 * k + n) * (2.0 * k + n + 1.0) / ((2.0 * k + 1.0) * (2.0 * k + 2.0)) / (x * x);
  }
  return (n % 2 ? 1.0 : -1.0) * factorial * (sum + tail);
}

}  // namespace lantern
