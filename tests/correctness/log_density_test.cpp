// Densities: their integrals are 1 and their means the textbook's, relations between them, derivatives beside
// differences, numbers and tensors, eager and compiled.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "lantern/random.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using Density = std::function<double(double)>;
constexpr double inf = std::numeric_limits<double>::infinity();

/// The integral of g from a to b by the double exponential rule (Takahasi and Mori, 1974); b may be infinite.
double integral(const std::function<double(double)>& g, double a, double b) {
  double sum = 0.0;
  constexpr double h = 1.0 / 64.0, half_pi = 1.5707963267948966;
  for (int k = -400; k <= 400; ++k) {
    const double t = h * k, s = half_pi * std::sinh(t);
    double x, dx;
    if (std::isfinite(a) && std::isfinite(b)) {
      const double c = std::cosh(s);
      x = a + (b - a) / (1.0 + std::exp(-2.0 * s));
      dx = (b - a) / 2.0 * half_pi * std::cosh(t) / (c * c);
    } else {
      x = a + std::exp(s);
      dx = std::exp(s) * half_pi * std::cosh(t);
    }
    const double y = std::isfinite(x) && std::isfinite(dx) ? g(x) * dx : 0.0;
    if (std::isfinite(y)) sum += y * h;
  }
  return sum;
}
/// The same where both ends may be infinite, in two parts that meet at `middle`.
double integral(const std::function<double(double)>& g, double a, double b, double middle) {
  if (std::isfinite(a)) return integral(g, a, b);
  return integral([&](double u) { return g(middle + u) + g(middle - u); }, 0.0, inf);
}

template <class F>
Density eager_density(const F& f) {
  return [call = eager(f)](double x) { return call(x); };
}

/// A density on (a, b) of this mean (none: NaN); derivatives at some places inside.
template <class F>
void check_continuous(const F& f, double a, double b, double mean, std::initializer_list<double> places) {
  const Density log_p = eager_density(f);
  const double middle = std::isnan(mean) ? 1.0 : mean;
  CHECK(integral([&](double x) { return std::exp(log_p(x)); }, a, b, middle) == Approx(1.0).epsilon(1e-9));
  if (!std::isnan(mean))
    CHECK(integral([&](double x) { return x * std::exp(log_p(x)); }, a, b, middle) == Approx(mean).epsilon(1e-8).margin(1e-9));
  if (std::isfinite(a)) CHECK(log_p(a - 0.5) == -inf);
  if (std::isfinite(b)) CHECK(log_p(b + 0.5) == -inf);
  const auto compiled = compile(value_and_grad(f), {.target = Target::c});
  for (const double x : places) {
    CAPTURE(x);
    const double h = 1e-6, slope = (log_p(x + h) - log_p(x - h)) / (2.0 * h);
    const auto [value, gradient] = compiled(x);
    CHECK(value == Approx(log_p(x)));
    CHECK(gradient == Approx(slope).epsilon(1e-6).margin(1e-8));
    CHECK(eager(grad<mode::forward>(f))(x) == Approx(gradient));
  }
  if (std::isfinite(a)) CHECK(eager(grad(f))(a - 0.5) == 0.0);
}
/// Probabilities of whole numbers from lo on.
template <class F>
void check_counts(const F& f, int lo, int hi, double mean) {
  const Density log_p = eager_density(f);
  double all = 0.0, first = 0.0;
  for (int k = lo; k <= hi; ++k) {
    all += std::exp(log_p(k));
    first += k * std::exp(log_p(k));
  }
  CHECK(all == Approx(1.0).epsilon(1e-12));
  CHECK(first == Approx(mean).epsilon(1e-11));
  CHECK(log_p(lo - 1.0) == -inf);
  CHECK(log_p(lo + 0.5) == -inf);
}

const double nothing = std::nan("");

}  // namespace

TEST_CASE("densities of all numbers") {
  check_continuous([](D x) { return log_density::normal(x, 1.5, 2.0); }, -inf, inf, 1.5, {-1.0, 1.5, 4.0});
  check_continuous([](D x) { return log_density::student_t(x, 5.0); }, -inf, inf, 0.0, {-1.0, 0.0, 4.0});
  check_continuous([](D x) { return log_density::cauchy(x, 1.0, 2.0); }, -inf, inf, nothing, {-1.0, 1.0, 4.0});
  check_continuous([](D x) { return log_density::laplace(x, 0.0, 2.0); }, -inf, inf, 0.0, {-1.0, 0.5, 4.0});
  check_continuous([](D x) { return log_density::logistic(x, 1.0, 2.0); }, -inf, inf, 1.0, {-1.0, 0.5, 4.0});
  check_continuous([](D x) { return log_density::gumbel(x, 1.0, 2.0); }, -inf, inf, 1.0 + 2.0 * 0.57721566490153286,
                   {-1.0, 0.5, 4.0});
}

TEST_CASE("densities of positive numbers and of intervals") {
  check_continuous([](D x) { return log_density::log_normal(x, 0.5, 0.75); }, 0.0, inf,
                   std::exp(0.5 + 0.75 * 0.75 / 2.0), {0.1, 1.0, 4.0});
  check_continuous([](D x) { return log_density::half_normal(x, 2.0); }, 0.0, inf, 2.0 * std::sqrt(2.0 / std::acos(-1.0)),
                   {0.1, 4.0});
  check_continuous([](D x) { return log_density::exponential(x, 2.5); }, 0.0, inf, 0.4, {0.1, 4.0});
  check_continuous([](D x) { return log_density::gamma(x, 2.5, 1.5); }, 0.0, inf, 2.5 / 1.5, {0.1, 4.0});
  check_continuous([](D x) { return log_density::inverse_gamma(x, 3.5, 1.5); }, 0.0, inf, 1.5 / 2.5, {0.1, 4.0});
  check_continuous([](D x) { return log_density::chi_squared(x, 5.0); }, 0.0, inf, 5.0, {0.1, 4.0});
  check_continuous([](D x) { return log_density::weibull(x, 1.5, 2.0); }, 0.0, inf, 2.0 * std::tgamma(1.0 + 1.0 / 1.5),
                   {0.1, 4.0});
  check_continuous([](D x) { return log_density::pareto(x, 3.5, 2.0); }, 2.0, inf, 2.0 * 3.5 / 2.5, {2.5, 4.0});
  check_continuous([](D x) { return log_density::beta(x, 2.5, 1.5); }, 0.0, 1.0, 2.5 / 4.0, {0.1, 0.75});
  check_continuous([](D x) { return log_density::uniform(x, -1.0, 3.0); }, -1.0, 3.0, 1.0, {0.1, 0.75});
}

TEST_CASE("probabilities of counts") {
  check_counts([](D x) { return log_density::bernoulli(x, 0.3); }, 0, 1, 0.3);
  check_counts([](D x) { return log_density::binomial(x, 7.0, 0.3); }, 0, 7, 2.1);
  check_counts([](D x) { return log_density::poisson(x, 2.5); }, 0, 60, 2.5);
  check_counts([](D x) { return log_density::geometric(x, 0.3); }, 1, 200, 1.0 / 0.3);
  check_counts([](D x) { return log_density::negative_binomial(x, 2.5, 0.4); }, 0, 200, 2.5 * 0.6 / 0.4);
  CHECK(eager([](D x) { return log_density::bernoulli(x, 0.0); })(0.0) == 0.0);
  CHECK(eager([](D x) { return log_density::binomial(x, 3.0, 1.0); })(3.0) == 0.0);
  CHECK(eager([](D x) { return log_density::poisson(x, 0.0); })(0.0) == 0.0);
}

TEST_CASE("relations between distributions") {
  for (const double x : {0.2, 0.9, 3.0}) {
    const auto same = [&](const auto& f, const auto& g) { CHECK(eager(f)(x) == Approx(eager(g)(x)).epsilon(1e-13)); };
    same([](D y) { return log_density::student_t(y, 1.0); }, [](D y) { return log_density::cauchy(y, 0.0, 1.0); });
    same([](D y) { return log_density::gamma(y, 1.0, 2.0); }, [](D y) { return log_density::exponential(y, 2.0); });
    same([](D y) { return log_density::weibull(y, 1.0, 0.5); }, [](D y) { return log_density::exponential(y, 2.0); });
    same([](D y) { return log_density::beta(y / 4.0, 1.0, 1.0); }, [](D y) { return log_density::uniform(y / 4.0, 0.0, 1.0); });
    same([](D y) { return log_density::inverse_gamma(y, 2.0, 3.0); },
         [](D y) { return log_density::gamma(1.0 / y, 2.0, 3.0) - 2.0 * log(y); });
  }
  CHECK(eager([](D x) { return log_density::gamma(x, 1.0, 2.0); })(0.0) == Approx(std::log(2.0)));
  CHECK(eager([](D x) { return log_density::beta(x, 1.0, 1.0); })(1.0) == 0.0);
}

TEST_CASE("parameters have derivatives, tensors are taken element by element") {
  // The mean and the deviation of largest likelihood are those of the sample.
  const auto likelihood = [](Rep<Tensor<double, dyn>> x, D mean, D deviation) {
    return sum(log_density::normal(x, mean, deviation));
  };
  const std::vector<double> x{1.0, 4.0, 7.0};
  const auto [dx, dmean, ddeviation] = compile(grad(likelihood), {.target = Target::c})(x, 4.0, std::sqrt(6.0));
  CHECK(dmean == Approx(0.0).margin(1e-14));
  CHECK(ddeviation == Approx(0.0).margin(1e-14));
  CHECK(dx[0] == Approx(0.5));
  const auto shape = [](D a) { return log_density::gamma(D(1.3), a, 2.0) + log_density::beta(D(0.3), a, 2.0) +
                                      log_density::student_t(D(0.3), a) + log_density::negative_binomial(D(4.0), a, 0.4); };
  const double h = 1e-6, slope = (eager(shape)(1.7 + h) - eager(shape)(1.7 - h)) / (2.0 * h);
  CHECK(eager(grad(shape))(1.7) == Approx(slope).epsilon(1e-7));
  CHECK(compile(grad<mode::forward>(shape), {.target = Target::c})(1.7) == Approx(slope).epsilon(1e-7));
  const auto all = [](Rep<Tensor<double, dyn>> y, Rep<Tensor<double, dyn>> rate) {
    return std::tuple(log_density::exponential(y, rate), log_density::poisson(y, rate), log_density::weibull(y, rate, 1.0));
  };
  const std::vector<double> rates{0.5, 1.0, 2.0};
  const auto [e, p, w] = eager(all)(x, rates);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(e.data[i] == Approx(std::log(rates[i]) - rates[i] * x[i]));
    CHECK(p.data[i] == Approx(x[i] * std::log(rates[i]) - rates[i] - std::lgamma(x[i] + 1.0)));
    CHECK(w.data[i] == Approx(std::log(rates[i]) + (rates[i] - 1.0) * std::log(x[i]) - std::pow(x[i], rates[i])));
  }
  CHECK(eager([](Rep<float> y) { return log_density::normal(y, 0.0, 1.0); })(0.5F) == Approx(-1.0439385F));
}
