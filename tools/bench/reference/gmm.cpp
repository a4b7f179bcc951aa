#include "gmm.hpp"

#include <cmath>
#include <numbers>

namespace lantern::bench::reference {
namespace {

double largest(int n, const double* x) {
  double most = x[0];
  for (int i = 1; i < n; ++i)
    if (x[i] > most) most = x[i];
  return most;
}

double logsumexp(int n, const double* x) {
  const double most = largest(n, x);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += std::exp(x[i] - most);
  return most + std::log(sum);
}

double squared_norm(int n, const double* x) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  return sum;
}

/// y = (diag + L) x, where L is strictly lower triangular and stored by columns.
void times(int d, const double* diagonal, const double* lower, const double* x, double* y) {
  for (int i = 0; i < d; ++i) y[i] = diagonal[i] * x[i];
  int at = 0;
  for (int i = 0; i < d; ++i)
    for (int j = i + 1; j < d; ++j) y[j] += lower[at++] * x[i];
}

/// log Γ_d(a), the multivariate gamma function.
double log_gamma(double a, int d) {
  double sum = 0.25 * d * (d - 1) * std::log(std::numbers::pi);
  for (int j = 1; j <= d; ++j) sum += std::lgamma(a + 0.5 * (1 - j));
  return sum;
}

/// The logarithm of the Wishart prior of all factors.
double log_wishart(const GmmInput& in, const double* diagonals, const double* log_determinants) {
  const int d = in.dimensions, size = in.factor_size();
  const int n = d + in.m + 1;
  const double c = n * d * (std::log(in.gamma) - 0.5 * std::numbers::ln2) - log_gamma(0.5 * n, d);
  double sum = 0;
  for (int k = 0; k < in.components; ++k) {
    const double frobenius =
        squared_norm(d, diagonals + k * d) + squared_norm(size - d, in.factors.data() + k * size + d);
    sum += 0.5 * in.gamma * in.gamma * frobenius - in.m * log_determinants[k];
  }
  return sum - in.components * c;
}

}  // namespace

double gmm(const GmmInput& in) {
  const int d = in.dimensions, components = in.components, size = in.factor_size();
  const auto entries = [](int n) { return std::vector<double>(static_cast<std::size_t>(n)); };

  std::vector<double> diagonals = entries(components * d), log_determinants = entries(components);
  for (int k = 0; k < components; ++k) {
    const double* q = in.factors.data() + k * size;
    double sum = 0;
    for (int i = 0; i < d; ++i) {
      sum += q[i];
      diagonals[static_cast<std::size_t>(k * d + i)] = std::exp(q[i]);
    }
    log_determinants[static_cast<std::size_t>(k)] = sum;
  }

  std::vector<double> centred = entries(d), scaled = entries(d), terms = entries(components);
  double likelihood = 0;
  for (int n = 0; n < in.points; ++n) {
    for (int k = 0; k < components; ++k) {
      for (int i = 0; i < d; ++i)
        centred[static_cast<std::size_t>(i)] =
            in.data[static_cast<std::size_t>(n * d + i)] - in.means[static_cast<std::size_t>(k * d + i)];
      times(d, diagonals.data() + k * d, in.factors.data() + k * size + d, centred.data(), scaled.data());
      const auto at = static_cast<std::size_t>(k);
      terms[at] = in.alphas[at] + log_determinants[at] - 0.5 * squared_norm(d, scaled.data());
    }
    likelihood += logsumexp(components, terms.data());
  }

  return -0.5 * in.points * d * std::log(2 * std::numbers::pi) + likelihood -
         in.points * logsumexp(components, in.alphas.data()) +
         log_wishart(in, diagonals.data(), log_determinants.data());
}

}  // namespace lantern::bench::reference
