// stddev, median, quantile, logaddexp, erfcinv, interp, cubic_spline: beside plain C++ and identities; derivatives
// beside differences, in forward and reverse mode, eager and compiled.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "lantern/tensor.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using Vector = std::vector<double>;
constexpr double inf = std::numeric_limits<double>::infinity(), no_number = std::numeric_limits<double>::quiet_NaN();

const Vector sample{3.5, -1.25, 0.5, 8.0, 2.0, -0.75, 4.5};

/// As numpy.quantile has it.
double plain_quantile(Vector v, double q) {
  std::sort(v.begin(), v.end());
  const double place = q * static_cast<double>(v.size() - 1), below = std::floor(place), part = place - below;
  const auto i = static_cast<std::size_t>(below);
  return i + 1 < v.size() ? (1.0 - part) * v[i] + part * v[i + 1] : v[i];
}

/// The derivative in forward and reverse mode, eagerly and compiled, is the difference quotient.
template <class F>
void check_slope(const F& f, double x, double tolerance = 1e-6) {
  const double h = 1e-5 * std::max(1.0, std::abs(x));
  const auto value = eager(f);
  const double difference = (value(x + h) - value(x - h)) / (2.0 * h);
  CAPTURE(x);
  CHECK(eager(grad(f))(x) == Approx(difference).epsilon(tolerance).margin(tolerance));
  CHECK(eager(grad<mode::forward>(f))(x) == Approx(difference).epsilon(tolerance).margin(tolerance));
  CHECK(compile(value_and_grad(f), {.target = Target::c})(x) ==
        std::tuple(Approx(value(x)), Approx(difference).epsilon(tolerance).margin(tolerance)));
}

}  // namespace

TEST_CASE("standard deviation") {
  const auto f = [](Rep<Array<double>> a) { return stddev(a); };
  const double mean = std::accumulate(sample.begin(), sample.end(), 0.0) / static_cast<double>(sample.size());
  double sum = 0.0;
  for (const double v : sample) sum += (v - mean) * (v - mean);
  const double expected = std::sqrt(sum / static_cast<double>(sample.size()));
  CHECK(eager(f)(sample) == Approx(expected));
  const Vector slope = compile(grad(f), {.target = Target::c})(sample);
  for (std::size_t i = 0; i < sample.size(); ++i)
    CHECK(slope[i] == Approx((sample[i] - mean) / expected / static_cast<double>(sample.size())));
  const auto rows = [](Rep<Tensor<double, dyn, dyn>> m) { return std::tuple(stddev<1>(m), stddev<0>(m, keep)); };
  const Vector m{1.0, 3.0, 5.0, 5.0};
  const auto [along, across] = eager(rows)(TensorView<const double>(m.data(), {2, 2}));
  CHECK(along.data == Vector{1.0, 0.0});
  CHECK(across.data == Vector{2.0, 1.0});
  CHECK(across.shape == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("quantiles and the median") {
  const auto f = [](Rep<Array<double>> a, D q) { return quantile(a, q); };
  const auto compiled = compile(f, {.target = Target::c});
  for (const double q : {0.0, 0.1, 0.25, 0.5, 0.77, 1.0}) {
    CAPTURE(q);
    CHECK(eager(f)(sample, q) == Approx(plain_quantile(sample, q)));
    CHECK(compiled(sample, q) == eager(f)(sample, q));
  }
  const auto middle = [](Rep<Array<double>> a) { return median(a); };
  CHECK(eager(middle)(sample) == 2.0);
  CHECK(eager(middle)({4.0, 1.0, 3.0, 2.0}) == 2.5);
  CHECK(eager(grad(middle))({4.0, 1.0, 3.0, 2.0}) == Vector{0.0, 0.0, 0.5, 0.5});
  // By the part: the slope between two neighbours.
  const auto [slopes, by_part] = compile(grad(f), {.target = Target::c})(sample, 0.1);
  CHECK(by_part == Approx((-0.75 + 1.25) * 6.0));
  CHECK(slopes[1] == Approx(0.4));
  CHECK(slopes[5] == Approx(0.6));
  CHECK(std::accumulate(slopes.begin(), slopes.end(), 0.0) == Approx(1.0));
  CHECK(std::isnan(eager(f)({1.0, no_number, 2.0}, 0.0)));
  CHECK(eager(f)({1.0, inf}, 0.0) == 1.0);
  CHECK(eager(f)({7.0}, 0.3) == 7.0);
  const auto columns = [](Rep<Tensor<double, dyn, dyn>> m) { return std::tuple(median<0>(m), quantile<1>(m, 0.25)); };
  const Vector m{1.0, 40.0, 3.0, 20.0, 2.0, 30.0};
  const auto [down, across] = compile(columns, {.target = Target::c})(TensorView<const double>(m.data(), {3, 2}));
  CHECK(down.data == Vector{2.0, 30.0});
  CHECK(across.data == Vector{10.75, 7.25, 9.0});
  CHECK_THROWS_WITH(eager(f)(sample, 1.5), Catch::EndsWith("quantile: expected a part from 0 to 1"));
  CHECK_THROWS_WITH(eager(f)(Vector(), 0.5), Catch::EndsWith("quantile: expected one element or more"));
}

TEST_CASE("logaddexp") {
  const auto f = [](D a, D b) { return logaddexp(a, b); };
  const auto value = eager(f);
  for (const double a : {-3.0, 0.0, 0.1, 2.0})
    for (const double b : {-2.0, 0.0, 2.0}) CHECK(value(a, b) == Approx(std::log(std::exp(a) + std::exp(b))));
  CHECK(value(1000.0, 1000.0) == Approx(1000.0 + std::log(2.0)));
  CHECK(value(0.1, -1e10) == 0.1);
  CHECK(value(-1e10, 0.1) == 0.1);
  CHECK(value(-inf, -inf) == -inf);
  CHECK(value(-inf, 3.0) == 3.0);
  CHECK(value(inf, inf) == inf);
  CHECK(value(inf, -inf) == inf);
  CHECK(std::isnan(value(no_number, 1.0)));
  for (const double a : {-3.0, 2.0, 40.0}) {
    const auto [da, db] = compile(grad(f), {.target = Target::c})(a, 2.0);
    CHECK(da == Approx(1.0 / (1.0 + std::exp(2.0 - a))));
    CHECK(db == Approx(1.0 / (1.0 + std::exp(a - 2.0))));
  }
  // Of two equal numbers each has half, and the second derivative is a quarter.
  CHECK(eager(grad<0>(f))(1.0, 1.0) == 0.5);
  CHECK(eager(grad<0>(grad<0>(f)))(1.0, 1.0) == Approx(0.25));
  const auto elements = [](Rep<Tensor<double, dyn>> t) { return logaddexp(t, 0.0); };
  CHECK(eager(elements)(Vector{0.0, -inf}).data == Vector{std::log(2.0), 0.0});
  CHECK(eager([](D x) { return logaddexp(0.0, x); })(0.0) == Approx(std::log(2.0)));
}

TEST_CASE("erfcinv is the inverse of erfc, also of the smallest numbers") {
  const auto f = [](D y) { return erfcinv(y); };
  const auto compiled = compile(f, {.target = Target::c});
  for (const double y : {1e-300, 1e-100, 1e-20, 1e-5, 0.01, 0.4, 0.999, 1.0, 1.001, 1.3, 1.9, 1.99999}) {
    CAPTURE(y);
    const double x = eager(f)(y);
    // An error of x is 2 x dx of erfc's size.
    CHECK(std::abs(std::erfc(x) / y - 1.0) <= 1e-15 * (4.0 + 4.0 * x * x));
    CHECK(compiled(y) == Approx(x).epsilon(1e-13).margin(1e-15));
    const double slope = -std::sqrt(std::acos(-1.0)) / 2.0 * std::exp(x * x);
    CHECK(eager(grad(f))(y) == Approx(slope).epsilon(1e-11));
    CHECK(eager(grad<mode::forward>(f))(y) == Approx(slope).epsilon(1e-11));
    if (y > 1e-100)  // else it is too large for a number
      CHECK(eager(grad(grad(f)))(y) == Approx(2.0 * x * slope * slope).epsilon(1e-9).margin(1e-9));
  }
  CHECK(eager(f)(0.0) == inf);
  CHECK(eager(f)(2.0) == -inf);
  CHECK(eager(grad(f))(0.0) == -inf);
  CHECK(std::isnan(eager(f)(-0.1)));
  CHECK(std::isnan(eager(f)(2.1)));
}

TEST_CASE("interpolation by lines") {
  const Vector xs{0.0, 1.0, 3.0, 3.5}, ys{1.0, 3.0, -1.0, 0.0};
  const auto f = [](D x, Rep<Array<double>> from, Rep<Array<double>> to) { return interp(x, from, to); };
  const auto value = eager(f);
  const auto compiled = compile(f, {.target = Target::c});
  const auto plain = [&](double x) {
    if (x <= xs.front()) return ys.front();
    if (x >= xs.back()) return ys.back();
    std::size_t i = 0;
    while (x >= xs[i + 1]) ++i;
    return ys[i] + (ys[i + 1] - ys[i]) * (x - xs[i]) / (xs[i + 1] - xs[i]);
  };
  for (const double x : {-2.0, 0.0, 0.25, 1.0, 2.9, 3.0, 3.2, 3.5, 9.0}) {
    CAPTURE(x);
    CHECK(value(x, xs, ys) == Approx(plain(x)));
    CHECK(compiled(x, xs, ys) == Approx(plain(x)));
  }
  CHECK(std::isnan(value(no_number, xs, ys)));
  const auto [dx, dxs, dys] = compile(grad(f), {.target = Target::c})(2.0, xs, ys);
  CHECK(dx == Approx(-2.0));
  CHECK(dys == Vector{0.0, 0.5, 0.5, 0.0});
  CHECK(dxs[1] == Approx(1.0));
  CHECK(dxs[2] == Approx(1.0));
  CHECK(eager(grad<0>(f))(-1.0, xs, ys) == 0.0);
  CHECK(eager(grad<0>(f))(5.0, xs, ys) == 0.0);
  CHECK(eager(grad<0>(f))(1.0, xs, ys) == -2.0);  // to the right of a point
  const auto many = [](Rep<Array<double>> x, Rep<Array<double>> from, Rep<Array<double>> to) { return interp(x, from, to); };
  CHECK(compile(many, {.target = Target::c})({0.5, 2.0}, xs, ys) == Vector{2.0, 1.0});
  CHECK_THROWS_WITH(value(1.0, {1.0}, {1.0}), Catch::EndsWith("interp: expected two points or more"));
}

TEST_CASE("the natural cubic spline") {
  const Vector xs{0.0, 0.5, 1.25, 2.0, 3.0}, ys{1.0, 0.2, -0.5, 0.75, 2.0};
  const auto f = [&](D x) {
    return cubic_spline(constant_table(xs), constant_table(ys))(x);
  };
  const auto value = eager(f);
  const auto slope = eager(grad(f));
  const auto curvature = eager(grad<mode::forward>(grad(f)));
  for (std::size_t i = 0; i < xs.size(); ++i) CHECK(value(xs[i]) == Approx(ys[i]).margin(1e-14));
  CHECK(curvature(0.0) == Approx(0.0).margin(1e-13));
  CHECK(curvature(3.0) == Approx(0.0).margin(1e-13));
  for (const double x : {0.5, 1.25, 2.0}) {  // continuous, and so are the first two derivatives
    const double h = 1e-9;
    CHECK(value(x - h) == Approx(value(x + h)).margin(1e-8));
    CHECK(slope(x - h) == Approx(slope(x + h)).margin(1e-7));
    CHECK(curvature(x - h) == Approx(curvature(x + h)).margin(1e-6));
  }
  for (const double x : {-0.5, 0.2, 1.0, 1.9, 2.5, 4.0}) check_slope(f, x);
  const auto by_formula = [&](D x) { return cubic_spline(constant_table(xs), constant_table(ys)).slope(x); };
  for (const double x : {-0.5, 0.2, 1.0, 2.5}) CHECK(eager(by_formula)(x) == Approx(slope(x)));
  // A line is met exactly, and derivatives by the values are those of the weights, which sum to 1.
  const auto by_values = [](Rep<Array<double>> x, Rep<Array<double>> y, D at) { return cubic_spline(x, y)(at); };
  CHECK(eager(by_values)(xs, {1.0, 2.0, 3.5, 5.0, 7.0}, 2.2) == Approx(5.4));
  const Vector weights = compile(grad<1>(by_values), {.target = Target::c})(xs, ys, 0.8);
  CHECK(std::accumulate(weights.begin(), weights.end(), 0.0) == Approx(1.0));
  double together = 0.0;
  for (std::size_t i = 0; i < ys.size(); ++i) together += weights[i] * ys[i];
  CHECK(together == Approx(value(0.8)));
  CHECK(eager(by_values)({0.0, 2.0}, {1.0, 5.0}, 0.5) == Approx(2.0));
}
