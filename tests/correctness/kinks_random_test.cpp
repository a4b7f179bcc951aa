// Random compositions of functions with kinks, at points where all of them have theirs.
//
// Each is F(k1(s), k2(s), ...), F and the s smooth, all s zero at the point: ties of max and min, abs at 0, hypot at (0, 0),
// bounds of clip, ends of the ranges of pow and acos, values with infinite slopes that are not taken, and equal eigenvalues. The conventions give at a tie of two the mean of
// the slopes to the two sides, so the gradient there is the mean of those a little way off in a direction and in the
// opposite one, which is a member of the generalised gradient (Clarke, "Optimization and Nonsmooth Analysis", 1983).
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "depth.hpp"
#include "lantern/lantern.hpp"
#include "lantern/linalg.hpp"

using namespace lantern;
using D = Rep<double>;
using Numbers = std::vector<double>;
using Function = std::function<D(D, D)>;

namespace {

class Compositions {
 public:
  explicit Compositions(unsigned seed) : random_(seed), x_(coordinate()), y_(coordinate()) {}

  double x() const { return x_; }
  double y() const { return y_; }

  Function next() {
    std::vector<Function> kinks;
    const int n = std::uniform_int_distribution<int>(1, 4)(random_);
    for (int i = 0; i < n; ++i) kinks.push_back(kink());
    return smooth(std::move(kinks));
  }

 private:
  double coordinate() { return std::uniform_int_distribution<int>(-1, 1)(random_); }
  double number() { return std::round(100 * std::uniform_real_distribution<double>(-2, 2)(random_)) / 100; }
  double factor() { return number() + (std::bernoulli_distribution(0.5)(random_) ? 2.5 : -2.5); }

  /// Zero at the point, with slopes other than zero.
  Function zero() {
    const double a = factor(), b = factor(), c = number(), x0 = x_, y0 = y_;
    return [=](D x, D y) {
      const D u = x - x0, v = y - y0;
      return a * u + b * v + c * u * v;
    };
  }
  /// The same, positive near the point.
  Function square() {
    const Function s = zero();
    return [s](D x, D y) { const D v = s(x, y); return v * v; };
  }

  Function kink() {
    const Function s = zero(), t = zero(), q = square();
    const double c = number(), l = std::abs(number()) + 0.5;
    switch (std::uniform_int_distribution<int>(0, 17)(random_)) {
      case 0: return [=](D x, D y) { return abs(s(x, y)); };
      case 1: return [=](D x, D y) { return max(c + s(x, y), c + t(x, y)); };
      case 2: return [=](D x, D y) { return min(c + s(x, y), c + t(x, y)); };
      case 3: return [=](D x, D y) { return max(s(x, y), 0.0); };
      case 4: return [=](D x, D y) { return clip(s(x, y), t(x, y), D(l)); };
      case 5: return [=](D x, D y) { return hypot(s(x, y), t(x, y)); };
      case 6: return [=](D x, D y) { return select(q(x, y) < 1.0, s(x, y), log(q(x, y))); };
      case 7:
        return [=](D x, D y) {
          const D pole = sqrt(q(x, y)), plain = l * s(x, y);
          return IF(q(x, y) < 1.0, [&] { return plain; }, [&] { return pole; });
        };
      case 8: return [=](D x, D y) { return max(c + s(x, y), c - l + sqrt(q(x, y))); };
      case 9: return [=](D x, D y) { return min(1.0 / q(x, y), l + t(x, y)); };
      case 10: return [=](D x, D y) { return relu(log(q(x, y))) + s(x, y); };
      case 11: return [=](D x, D y) { return clip(c + s(x, y), D(c - l), c + t(x, y)); };
      case 12: return [=](D x, D y) { return pow(q(x, y), 1.25) + pow(s(x, y), 3.0); };
      case 13: return [=](D x, D y) { return max(c + s(x, y), c - l + acos(1.0 - q(x, y))); };
      case 14:
        return [=](D x, D y) {
          const D pole = log(q(x, y));
          return FOR(0, 3, s(x, y), [&](auto i, auto sum) {
            return IF(i < 3, [&] { return sum + t(x, y); }, [&] { return sum * pole; });
          });
        };
      case 15:
        return [=](D x, D y) {
          const D nothing = FOR(0, 2, D(0.0), [&](auto i, auto sum) {
            return IF(i > 1, [&] { return sum + s(x, y); }, [&] { return sum; });
          });
          return sqrt(nothing) + t(x, y);
        };
      case 16: {
        const auto nothing = FUN<double(double, int64_t)>("nothing", [](auto self, D v, Rep<int64_t> n) {
          return IF(n == 0, [] { return D(0.0); }, [&] { return IF(n > 5, [&] { return v; }, [&] { return self(v, n - 1); }); });
        });
        return [=](D x, D y) { return log(1.0 + sqrt(nothing(s(x, y), int64_t{2}))) + t(x, y); };
      }
      default:
        return [=](D x, D y) {
          const auto both = IF(x < 2.0, [&] { return std::pair(s(x, y), sqrt(q(x, y))); },
                               [&] { return std::pair(t(x, y), t(x, y)); });
          return both.first;
        };
    }
  }

  Function smooth(std::vector<Function> kinks) {
    Numbers a, b;
    for (std::size_t i = 0; i < kinks.size(); ++i) a.push_back(factor()), b.push_back(number());
    return [=](D x, D y) {
      D sum = 0.0, product = 1.0;
      for (std::size_t i = 0; i < kinks.size(); ++i) {
        const D k = kinks[i](x, y);
        sum = sum + a[i] * k;
        product = product * (1.5 + b[i] * k);
      }
      return sum + product + sin(sum);
    };
  }

  std::mt19937 random_;
  double x_, y_;
};

Numbers slopes(const std::tuple<double, double>& g) { return {std::get<0>(g), std::get<1>(g)}; }

}  // namespace

TEST_CASE("compositions of functions with kinks, at their kinks") {
  const test::Seeds seeds(250, 5000);
  seeds.each([&](unsigned seed) {
    Compositions all(seed);
    const double x = all.x(), y = all.y();
    const Function f = all.next();
    INFO("seed " << seed << " at " << x << ", " << y);
    const auto gradient = grad(f);
    const auto forward = [f](D a, D b, D da, D db) { return std::get<1>(jvp(f)(a, b, da, db)); };
    const Numbers at = slopes(eager(gradient)(x, y));
    constexpr double h = 1e-6, u = 0.6, v = 0.37;
    const Numbers right = slopes(eager(gradient)(x + h * u, y + h * v)), left = slopes(eager(gradient)(x - h * u, y - h * v));
    for (std::size_t i = 0; i < 2; ++i) {
      INFO("by argument " << i << ": " << at[i] << ", to the sides " << left[i] << ", " << right[i]);
      CHECK(at[i] == Approx((left[i] + right[i]) / 2).epsilon(1e-3).margin(1e-3));
    }
    const auto run = eager(forward);
    CHECK(run(x, y, 1, 0) == Approx(at[0]));
    CHECK(run(x, y, 0, 1) == Approx(at[1]));
    for (const int opt : {0, 2}) {
      const CompileOptions options{.target = Target::c, .opt = opt};
      const Numbers compiled = slopes(compile(gradient, options)(x, y));
      for (std::size_t i = 0; i < 2; ++i) CHECK(compiled[i] == Approx(at[i]));
      CHECK(compile(forward, options)(x, y, 1, 0) == Approx(at[0]));
    }
    if (seed % 25 == 0) {
      const Numbers compiled = slopes(compile(gradient, {.target = Target::cpp, .opt = 3})(x, y));
      for (std::size_t i = 0; i < 2; ++i) CHECK(compiled[i] == Approx(at[i]));
    }
  });
}

TEST_CASE("second derivatives of compositions of functions with kinks: one number by every nesting, or NaN") {
  unsigned numbers = 0;
  const test::Seeds seeds(200, 5000);
  seeds.each([&](unsigned seed) {
    Compositions all(seed);
    const double x = all.x(), y = all.y();
    const Function f = all.next();
    INFO("seed " << seed << " at " << x << ", " << y);
    constexpr double u = 0.7, v = -0.4, du = 0.3, dv = 0.9;
    const auto slope = [f](D a, D b) {
      const auto [by_a, by_b] = grad(f)(a, b);
      return u * by_a + v * by_b;
    };
    const auto along = [f](D a, D b) { return std::get<1>(jvp(f)(a, b, u, v)); };
    const auto ways = [=](D a, D b) {
      const auto twice = grad(slope)(a, b), of_jvp = grad(along)(a, b);
      return std::tuple(std::get<1>(jvp(slope)(a, b, du, dv)), du * std::get<0>(twice) + dv * std::get<1>(twice),
                        du * std::get<0>(of_jvp) + dv * std::get<1>(of_jvp));
    };
    Numbers found;
    const auto take = [&](const std::tuple<double, double, double>& h) {
      for (const double one : {std::get<0>(h), std::get<1>(h), std::get<2>(h)})
        if (!std::isnan(one)) found.push_back(one);
    };
    take(eager(ways)(x, y));
    if (seed % 10 == 0) take(compile(ways, {.target = Target::c, .opt = 2})(x, y));
    for (const double one : found) CHECK(one == Approx(found[0]));
    numbers += !found.empty();
  });
  CHECK(numbers >= seeds.count * 2 / 5);
}

TEST_CASE("compositions of functions with kinks of equal eigenvalues, at their kinks") {
  using M = Rep<Tensor<double, dyn, dyn>>;
  std::mt19937 random(11);
  const auto number = [&] { return std::uniform_real_distribution<double>(-1, 1)(random); };
  for (int program = 0; program < 40; ++program) {
    // x b + y c + diag(1, 1, w) at (0, 0): its eigenvalues 1 are exact there.
    Numbers b(9), c(9), factors(4);
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        b[3 * i + j] = b[3 * j + i] = number();
        c[3 * i + j] = c[3 * j + i] = number();
      }
    for (double& a : factors) a = number();
    const double w = program % 3 == 0 ? 1 : 1.5 + number();
    const int kind = program % 5;
    const Function f = [=](D x, D y) {
      M a = fill(D(0.0), 3, 3);
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
          const auto k = static_cast<std::size_t>(3 * i + j);
          a = a.set(i, j, x * b[k] + y * c[k] + (i == j ? (i == 2 ? w : 1.0) : 0.0));
        }
      const auto values = linalg::eigh(a).values;
      D kinks = 0.0, smooth = 0.0;
      for (int i = 0; i < 3; ++i) {
        const D v = values(i);
        smooth = smooth + exp(factors[0] * v);
        kinks = kinks + (kind == 0   ? abs(v - 1.0)
                         : kind == 1 ? max(v, 1.0)
                         : kind == 2 ? clip(v, D(1.0), D(5.0))
                         : kind == 3 ? select(v < 3.0, v * v, log(v - 1.0))
                                     : min(1.0 / ((v - 1.0) * (v - 1.0)), v));
      }
      return factors[1] * kinks + factors[2] * smooth + factors[3] * kinks * smooth;
    };
    INFO("program " << program);
    const auto gradient = grad(f);
    const auto forward = [f](D a, D d, D da, D dd) { return std::get<1>(jvp(f)(a, d, da, dd)); };
    const Numbers at = slopes(eager(gradient)(0, 0));
    constexpr double h = 1e-6, u = 0.6, v = 0.37;
    const Numbers right = slopes(eager(gradient)(h * u, h * v));
    const Numbers left = slopes(eager(gradient)(-h * u, -h * v));
    const double sides = u * (left[0] + right[0]) / 2 + v * (left[1] + right[1]) / 2;
    CHECK(u * at[0] + v * at[1] == Approx(sides).epsilon(1e-3).margin(1e-3));
    CHECK(eager(forward)(0, 0, u, v) == Approx(u * at[0] + v * at[1]).margin(1e-12));
    const Numbers compiled = slopes(compile(gradient, {.target = Target::c, .opt = 2})(0, 0));
    for (std::size_t i = 0; i < 2; ++i) CHECK(compiled[i] == Approx(at[i]).margin(1e-12));
  }
}
