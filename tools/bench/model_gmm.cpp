#include "model_gmm.hpp"

#include <cmath>
#include <numbers>

#include "derivative_check.hpp"
#include "model.hpp"

namespace lantern::bench {
namespace {

Number logsumexp(const Index& n, const Vector& x) {
  const Number most = FOR(1, n, x[0], [&](Index i, Number m) { return max(m, x[i]); });
  return most + log(total(0, n, [&](Index i) { return exp(x[i] - most); }));
}

/// Where entry (i, j) of a factor's lower triangle is: after the diagonal, column by column.
Index lower(const Index& dimensions, const Index& i, const Index& j) {
  return dimensions + j * (2 * dimensions - j - 1) / 2 + i - j - 1;
}

/// log Γ_d(a), the multivariate gamma function.
Number log_gamma(const Number& a, const Index& d) {
  const Number n = cast<double>(d);
  return 0.25 * n * (n - 1.0) * std::log(std::numbers::pi) +
         total(1, d + 1, [&](Index j) { return lgamma(a + 0.5 * (1.0 - cast<double>(j))); });
}

/// The log-likelihood of the points with a Wishart prior on the factors.
Number gmm(Vector alphas, Matrix means, Matrix factors, Matrix points, Number gamma, Index m) {
  const Index count = points.dim(0), dimensions = points.dim(1), components = alphas.size();

  const Vector log_determinant = tabulate(
      components, [&](Index k) { return total(0, dimensions, [&](Index i) { return factors(k, i); }); });
  const Number likelihood = total(0, count, [&](Index n) {
    const Vector terms = tabulate(components, [&](Index k) {
      const Vector centred = tabulate(dimensions, [&](Index i) { return points(n, i) - means(k, i); });
      const Number square = total(0, dimensions, [&](Index i) {
        const Number scaled = FOR(0, i, exp(factors(k, i)) * centred[i], [&](Index j, Number sum) {
          return sum + factors(k, lower(dimensions, i, j)) * centred[j];
        });
        return scaled * scaled;
      });
      return alphas[k] + log_determinant[k] - 0.5 * square;
    });
    return logsumexp(components, terms);
  });

  const Number prior = total(0, components, [&](Index k) {
    const Number diagonal = total(0, dimensions, [&](Index i) {
      const Number e = exp(factors(k, i));
      return e * e;
    });
    const Number triangle =
        total(dimensions, factors.dim(1), [&](Index i) { return factors(k, i) * factors(k, i); });
    return 0.5 * gamma * gamma * (diagonal + triangle) - cast<double>(m) * log_determinant[k];
  });
  const Number freedom = cast<double>(dimensions + m + 1), d = cast<double>(dimensions);
  const Number normal =
      freedom * d * (log(gamma) - 0.5 * std::numbers::ln2) - log_gamma(0.5 * freedom, dimensions);

  return -0.5 * cast<double>(count) * d * std::log(2 * std::numbers::pi) + likelihood -
         cast<double>(count) * logsumexp(components, alphas) + prior - cast<double>(components) * normal;
}

}  // namespace

std::vector<Form> gmm_forms(const std::shared_ptr<const GmmInput>& in, const std::string& problem,
                            int threads) {
  static const auto objective = compile(gmm, model_options("gmm"));
  static const auto gradient = compile(grad<0, 1, 2>(gmm), model_options("gmm_gradient"));

  const std::int64_t dimensions = in->dimensions, factor_size = in->factor_size();
  const auto with_arguments = [=](auto&& run) {
    run(std::span(in->alphas), matrix(in->means, dimensions), matrix(in->factors, factor_size),
        matrix(in->data, dimensions), in->gamma, in->m);
  };
  const auto value = std::make_shared<std::vector<double>>(1);
  const auto run_objective = [=] {
    with_arguments([&](const auto&... a) { objective.into(value->front(), a...); });
  };
  const auto derivative =
      std::make_shared<std::vector<double>>(in->alphas.size() + in->means.size() + in->factors.size());
  const auto reverse = [=](const std::string& name, const auto& f) -> Form {
    const auto run = [=] {
      const auto [alphas, means, factors] =
          parts(*derivative, in->alphas.size(), in->means.size(), in->factors.size());
      const auto means_out = matrix(means, dimensions), factors_out = matrix(factors, factor_size);
      with_arguments([&](const auto&... a) { f.into(alphas, means_out, factors_out, a...); });
    };
    return {name, run, [=] { return run(), check_derivative(*derivative, problem, differentiable(in)); }};
  };
  std::vector<Form> forms{{"objective", run_objective,
                           [=] { return run_objective(), check_objective(*value, differentiable(in)); }},
                          reverse("reverse", gradient)};
  if (threads > 1)
    forms.push_back(reverse(in_threads("reverse", threads),
                            compile(grad<0, 1, 2>(gmm), model_options("gmm_gradient", threads))));
  return forms;
}

}  // namespace lantern::bench
