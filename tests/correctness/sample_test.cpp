// Samples: mean and variance of each law beside the textbook's, distribution functions, derivatives by
// parameters.
#include <catch2/catch.hpp>
#include <cmath>

#include "lantern/random.hpp"
#include "lantern/special.hpp"
#include "lantern/tensor.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using V = Rep<Tensor<double>>;

constexpr std::int64_t draws = 20'000;

/// Mean and variance of what a law draws, within five standard errors; `kurtosis` bounds the fourth moment
/// over the squared variance.
template <class F>
void check_moments(const char* name, const F& law, double mean, double variance, double kurtosis = 10) {
  CAPTURE(name);
  const auto f = [law](I key) { return law(key, draws); };
  const auto x = compile(f, {.target = Target::c})(11);
  double first = 0, second = 0;
  for (const double v : x.data) first += v / draws;
  for (const double v : x.data) second += (v - first) * (v - first) / draws;
  CHECK(std::abs(first - mean) < 5 * std::sqrt(variance / draws));
  CHECK(std::abs(second - variance) < 5 * variance * std::sqrt(kurtosis / draws));
  // Eagerly the same, here of a few.
  const auto few = eager([law](I key) { return law(key, std::int64_t{7}); })(11);
  for (std::size_t i = 0; i < few.data.size(); ++i) CHECK(few.data[i] == Approx(x.data[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("means and variances of samples", "[random]") {
  constexpr double pi = 3.14159265358979323846, euler = 0.5772156649015329;
  const auto n = [](const auto& draw) { return [draw](I k, std::int64_t m) { return draw(k, m); }; };
  check_moments("normal", n([](I k, std::int64_t m) { return sample::normal(k, {m}, 2.0, 3.0); }), 2, 9);
  check_moments("log_normal", n([](I k, std::int64_t m) { return sample::log_normal(k, {m}, 0.5, 0.25); }),
                std::exp(0.53125), (std::exp(0.0625) - 1) * std::exp(1.0625));
  check_moments("half_normal", n([](I k, std::int64_t m) { return sample::half_normal(k, {m}, 2.0); }),
                2 * std::sqrt(2 / pi), 4 * (1 - 2 / pi));
  check_moments("uniform", n([](I k, std::int64_t m) { return sample::uniform(k, {m}, -1.0, 3.0); }), 1,
                16.0 / 12);
  check_moments("exponential", n([](I k, std::int64_t m) { return sample::exponential(k, {m}, 2.0); }), 0.5,
                0.25);
  check_moments("gamma", n([](I k, std::int64_t m) { return sample::gamma(k, {m}, 2.5, 2.0); }), 1.25, 0.625);
  check_moments("gamma, small shape", n([](I k, std::int64_t m) { return sample::gamma(k, {m}, 0.3, 1.0); }),
                0.3, 0.3, 25);
  check_moments("inverse_gamma",
                n([](I k, std::int64_t m) { return sample::inverse_gamma(k, {m}, 9.0, 4.0); }), 0.5,
                0.25 / 7);
  check_moments("chi_squared", n([](I k, std::int64_t m) { return sample::chi_squared(k, {m}, 3.0); }), 3, 6);
  check_moments("beta", n([](I k, std::int64_t m) { return sample::beta(k, {m}, 2.0, 3.0); }), 0.4, 0.04);
  check_moments("beta, small", n([](I k, std::int64_t m) { return sample::beta(k, {m}, 1e-3, 1e-3); }), 0.5,
                0.25 / 1.002);
  check_moments("student_t", n([](I k, std::int64_t m) { return sample::student_t(k, {m}, 9.0); }), 0,
                9.0 / 7);
  check_moments("laplace", n([](I k, std::int64_t m) { return sample::laplace(k, {m}, 1.0, 2.0); }), 1, 8);
  check_moments("logistic", n([](I k, std::int64_t m) { return sample::logistic(k, {m}, 1.0, 2.0); }), 1,
                4 * pi * pi / 3);
  check_moments("gumbel", n([](I k, std::int64_t m) { return sample::gumbel(k, {m}, 1.0, 2.0); }),
                1 + 2 * euler, 4 * pi * pi / 6);
  const double g1 = std::tgamma(1.5), g2 = std::tgamma(2.0);
  check_moments("weibull", n([](I k, std::int64_t m) { return sample::weibull(k, {m}, 2.0, 3.0); }), 3 * g1,
                9 * (g2 - g1 * g1));
  check_moments("pareto", n([](I k, std::int64_t m) { return sample::pareto(k, {m}, 9.0, 2.0); }), 2.25,
                4.0 * 9 / (64 * 7), 20);
  check_moments("bernoulli", n([](I k, std::int64_t m) { return sample::bernoulli(k, {m}, 0.3); }), 0.3,
                0.21);
  check_moments("binomial, few", n([](I k, std::int64_t m) { return sample::binomial(k, {m}, 12.0, 0.3); }),
                3.6, 2.52);
  check_moments("binomial, many", n([](I k, std::int64_t m) { return sample::binomial(k, {m}, 200.0, 0.7); }),
                140, 42);
  check_moments("poisson, few", n([](I k, std::int64_t m) { return sample::poisson(k, {m}, 3.0); }), 3, 3);
  check_moments("poisson, many", n([](I k, std::int64_t m) { return sample::poisson(k, {m}, 50.0); }), 50,
                50);
  check_moments("geometric", n([](I k, std::int64_t m) { return sample::geometric(k, {m}, 0.25); }), 4, 12);
  check_moments("negative_binomial",
                n([](I k, std::int64_t m) { return sample::negative_binomial(k, {m}, 3.0, 0.4); }), 4.5,
                11.25);
}

TEST_CASE("distribution functions of samples are uniform", "[random]") {
  const auto check = [](const char* name, const auto& f) {
    CAPTURE(name);
    const auto u = compile(f, {.target = Target::c})(5);
    std::array<double, 10> share{};
    for (const double v : u.data) share[static_cast<std::size_t>(std::min(9.0, 10 * v))] += 1.0 / draws;
    for (const double s : share) CHECK(std::abs(s - 0.1) < 5 * std::sqrt(0.09 / draws));
  };
  check("gamma 0.3", [](I k) { return special::gammainc(0.3, sample::gamma(k, {draws}, 0.3, 1.0)); });
  check("gamma 20", [](I k) { return special::gammainc(20.0, sample::gamma(k, {draws}, 20.0, 1.0)); });
  check("beta", [](I k) { return special::betainc(0.5, 2.0, sample::beta(k, {draws}, 0.5, 2.0)); });
  check("cauchy", [](I k) {
    return tabulate([x = sample::cauchy(k, {draws}, 1.0, 2.0)](
                        I i) { return 0.5 + atan2((x(i) - 1.0) / 2.0, D(1.0)) / 3.14159265358979323846; },
                    draws);
  });
  // P(count <= k) of a Poisson law is Q(k + 1, mean); a uniform number goes between the steps.
  check("poisson", [](I k) {
    const V n = sample::poisson(k, {draws}, 30.0), u = random::uniform<double>(random::fold_in(k, 9), draws);
    return tabulate(
        [=](I i) {
          const D below = select(n(i) > 0.0, special::gammaincc(max(n(i), 1.0), D(30.0)), D(0.0));
          return below + u(i) * (special::gammaincc(n(i) + 1.0, D(30.0)) - below);
        },
        draws);
  });
  check("binomial", [](I k) {
    const V n = sample::binomial(k, {draws}, 80.0, 0.4),
            u = random::uniform<double>(random::fold_in(k, 9), draws);
    const auto up_to = [](const D& c) { return special::betainc(80.0 - c, c + 1.0, D(0.6)); };
    return tabulate(
        [=](I i) {
          const D below = select(n(i) > 0.0, up_to(max(n(i) - 1.0, 0.0)), D(0.0));
          return below + u(i) * (up_to(n(i)) - below);
        },
        draws);
  });
}

TEST_CASE("derivatives of samples by their parameters", "[random]") {
  // Of the mean of many: the derivative of the law's mean, within five standard errors.
  const auto check = [](const char* name, const auto& f, double p, double slope, double deviation) {
    CAPTURE(name);
    const auto mean = [f](I key, D a) { return lantern::mean(f(key, a)); };
    const double got = compile(grad<1>(mean), {.target = Target::c})(3, p);
    CHECK(std::abs(got - slope) < 5 * deviation / std::sqrt(4000.0));
    CHECK(
        eager(grad<1>([f](I key, D a) { return sum(f(key, a)(core::range(0, 3))); }))(3, p) ==
        Approx(compile(grad<1, mode::forward>([f](I key, D a) { return sum(f(key, a)(core::range(0, 3))); }),
                       {.target = Target::c})(3, p))
            .epsilon(1e-9));
  };
  check(
      "normal", [](I k, D a) { return sample::normal(k, {4000}, a, 2.0); }, 1.5, 1, 1e-9);
  check(
      "exponential", [](I k, D a) { return sample::exponential(k, {4000}, a); }, 2, -0.25, 0.25);
  check(
      "gamma", [](I k, D a) { return sample::gamma(k, {4000}, a, 1.0); }, 2.5, 1, 1);
  check(
      "gamma, small", [](I k, D a) { return sample::gamma(k, {4000}, a, 1.0); }, 0.4, 1, 2);
  check(
      "gamma squared",
      [](I k, D a) {
        const V x = sample::gamma(k, {4000}, a, 1.0);
        return V(x * x);
      },
      2.5, 6, 12);
  check(
      "beta", [](I k, D a) { return sample::beta(k, {4000}, a, 3.0); }, 2, 3.0 / 25, 0.1);
  check(
      "chi_squared", [](I k, D a) { return sample::chi_squared(k, {4000}, a); }, 3, 1, 1);
  check(
      "student_t squared",
      [](I k, D a) {
        const V x = sample::student_t(k, {4000}, a);
        return V(x * x);
      },
      12, -2.0 / 100, 0.1);
  check(
      "weibull", [](I k, D a) { return sample::weibull(k, {4000}, 2.0, a); }, 3, std::tgamma(1.5), 0.5);
  check(
      "poisson", [](I k, D a) { return sample::poisson(k, {4000}, a); }, 3, 0, 1e-9);
  // Of second order: of a gamma number of shape a, E[x] = a.
  const auto second = [](I key, D a) { return lantern::mean(sample::gamma(key, {2000}, a, 1.0)); };
  CHECK(std::abs(eager(grad<1, mode::forward>(grad<1>(
            [](I key, D a) { return lantern::mean(sample::gamma(key, {200}, a, 1.0)); })))(3, 2.5)) < 0.1);
  CHECK(std::abs(compile(grad<1, mode::forward>(grad<1>(second)), {.target = Target::c})(3, 2.5)) < 0.03);
}

TEST_CASE("samples: one number, float, parameters for each element", "[random]") {
  CHECK(eager([](I k) { return sample::poisson(k, 1e-9); })(1) == 0);
  CHECK(eager([](I k, D p) { return sample::binomial(k, 10.0, p); })(1, 1.0) == 10);
  CHECK(eager([](I k, D p) { return sample::binomial(k, 10.0, p); })(1, 0.0) == 0);
  CHECK(eager([](I k) { return sample::geometric(k, 1.0); })(1) == 1);
  const auto f = [](I k, Rep<Tensor<float, dyn, dyn>> shape) {
    return sample::gamma<float>(k, {2, 2}, shape, 1.0F);
  };
  const TensorValue<float> a({1, 10, 100, 1000}, {2, 2});
  const auto x = compile(f, {.target = Target::c})(4, a);
  CHECK(x.shape == std::vector<std::int64_t>{2, 2});
  for (std::size_t i = 1; i < 4; ++i) CHECK(std::abs(x.data[i] - a.data[i]) < 6 * std::sqrt(a.data[i]));
  CHECK_THROWS_WITH(eager(f)(4, TensorValue<float>({2, 3}, 1)),
                    Catch::Contains("sample: expected a parameter of the sizes that are drawn"));
}
