// Prices of options: closed forms, simulation, trees.
#include "program_check.hpp"

namespace lantern::test {
namespace {

template <class T>
using Element = std::remove_cvref_t<T>;

TEST_CASE("programs: options by Black and Scholes", "[programs]") {
  const auto staged = [](Vec s, Vec k, Vec t, Vec sigma, Num r) {
    const auto cdf = [](Num x) { return 0.5 * (1.0 + erf(x / std::sqrt(2.0))); };
    return total(s.size(), [&](Int i) {
      const Num v = sigma[i] * sqrt(t[i]);
      const Num d1 = (log(s[i] / k[i]) + (r + 0.5 * sigma[i] * sigma[i]) * t[i]) / v, d2 = d1 - v;
      return s[i] * cdf(d1) - k[i] * exp(-r * t[i]) * cdf(d2);
    });
  };
  const auto plain = [](const auto& s, const auto& k, const auto& t, const auto& sigma, auto r) {
    using T = decltype(r);
    T price = 0.0;
    const auto cdf = [](const T& x) -> T { return 0.5 * (1.0 + erf(x / std::sqrt(2.0))); };
    for (std::size_t i = 0; i < s.size(); ++i) {
      const T v = sigma[i] * sqrt(t[i]);
      const T d1 = (log(s[i] / k[i]) + (r + 0.5 * sigma[i] * sigma[i]) * t[i]) / v, d2 = d1 - v;
      price += s[i] * cdf(d1) - k[i] * exp(-r * t[i]) * cdf(d2);
    }
    return price;
  };
  auto p = checked<double(Array<double>, Array<double>, Array<double>, Array<double>, double), 0, 1, 2, 3, 4>(
      staged, plain);
  for (const i64 n : {0, 1, 3, 7, 31, 33, 100, 1000, 10000})
    p(numbers(n, 100, 20), numbers(n, 100, 20, 0.9), numbers(n, 1.0, 0.5), numbers(n, 0.3, 0.1, 0.5), 0.03);
}

TEST_CASE("programs: options by simulated paths", "[programs]") {
  // Asian option: the mean of each path; normals given
  const auto staged = [](Num s0, Num sigma, Num r, Num strike, Mat z) {
    const Int paths = z.dim(0), steps = z.dim(1);
    const Num dt = 1.0 / cast<double>(steps);
    const Num payoff = total(paths, [&](Int p) {
      const auto [s, mean] = FOR(0, steps, std::tuple(s0, Num(0.0)), [&](Int k, Num s, Num m) {
        const Num next = s * exp((r - 0.5 * sigma * sigma) * dt + sigma * sqrt(dt) * z(p, k));
        return std::tuple(next, m + next);
      });
      return max(mean / cast<double>(steps) - strike, Num(0.0));
    });
    return exp(-r) * payoff / cast<double>(paths);
  };
  const auto plain = [](auto s0, auto sigma, auto r, auto strike, const auto& z) {
    using T = decltype(s0);
    T payoff = 0.0;
    const double dt = 1.0 / static_cast<double>(z.cols);
    for (i64 p = 0; p < z.rows; ++p) {
      T s = s0, m = 0.0;
      for (i64 k = 0; k < z.cols; ++k) {
        s = s * exp((r - 0.5 * sigma * sigma) * dt + sigma * std::sqrt(dt) * z(p, k));
        m += s;
      }
      payoff += max(m / static_cast<double>(z.cols) - strike, T(0.0));
    }
    return T(exp(-r) * payoff / static_cast<double>(z.rows));
  };
  auto p = checked<double(double, double, double, double, Matrix), 0, 1, 2, 3>(staged, plain);
  for (auto [m, n] :
       std::vector<std::pair<i64, i64>>{{1, 1}, {3, 7}, {7, 3}, {33, 10}, {100, 12}, {1000, 50}})
    p(100.0, 0.2, 0.05, 98.0, grid(m, n, 0.0, 1.0, 2.3));
  // Barrier, linear congruential random numbers inside (integers mixed with doubles), Box-Muller
  const auto barrier = [](Num s0, Num sigma, Num barrier, Int paths, Int steps) {
    return total(paths,
                 [&](Int p) {
                   const auto [seed, s, alive] =
                       FOR(0, steps, std::tuple(p * 7919 + 17, s0, Num(1.0)),
                           [&](Int, Int seed, Num s, Num alive) {
                             const Int a = (seed * 1103515245 + 12345) % Int(2147483648);
                             const Int b = (a * 1103515245 + 12345) % Int(2147483648);
                             const Num u = (cast<double>(a) + 1.0) / 2147483649.0,
                                       v = cast<double>(b) / 2147483648.0;
                             const Num z = sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
                             const Num next = s * exp(-0.5 * sigma * sigma * 0.01 + sigma * 0.1 * z);
                             return std::tuple(
                                 b, next,
                                 IF(
                                     next > barrier, [&] { return Num(0.0); }, [&] { return alive; }));
                           });
                   return alive * max(s - 100.0, Num(0.0));
                 }) /
           cast<double>(paths);
  };
  const auto barrier_plain = [](auto s0, auto sigma, double barrier, i64 paths, i64 steps) {
    using T = decltype(s0);
    T out = 0.0;
    for (i64 p = 0; p < paths; ++p) {
      i64 seed = p * 7919 + 17;
      T s = s0;
      double alive = 1;
      for (i64 k = 0; k < steps; ++k) {
        const i64 a = (seed * 1103515245 + 12345) % 2147483648;
        const i64 b = (a * 1103515245 + 12345) % 2147483648;
        const double u = (static_cast<double>(a) + 1.0) / 2147483649.0,
                     v = static_cast<double>(b) / 2147483648.0;
        const double z = std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
        s = s * exp(-0.5 * sigma * sigma * 0.01 + sigma * 0.1 * z);
        seed = b;
        if (value(s) > barrier) alive = 0;
      }
      out += alive * max(s - 100.0, T(0.0));
    }
    return T(out / static_cast<double>(paths));
  };
  auto b = checked<double(double, double, double, i64, i64), 0, 1>(barrier, barrier_plain);
  for (auto [m, n] : std::vector<std::pair<i64, i64>>{{1, 1}, {3, 7}, {7, 3}, {33, 10}, {1000, 50}})
    b(100.0, 0.2, 130.0, m, n);
}

// American put by a binomial tree, in place
TEST_CASE("programs: an American option by a tree of prices", "[programs]") {
  const auto staged = [](Num s0, Num sigma, Num r, Num strike, Int n) {
    const Num dt = 1.0 / cast<double>(n), up = exp(sigma * sqrt(dt)), down = 1.0 / up;
    const Num grow = exp(r * dt), p = (grow - down) / (up - down);
    const Vec leaves = tabulate(n + 1, [&](Int i) {
      return max(strike - s0 * exp(cast<double>(2 * i - n) * sigma * sqrt(dt)), Num(0.0));
    });
    const Vec v = FOR(0, n, leaves, [&](Int k, Vec v) {
      const Int level = n - 1 - k;
      return FOR(0, level + 1, v, [&](Int i, Vec w) {
        const Num hold = (p * w[i + 1] + (1.0 - p) * w[i]) / grow;
        return w.set(i, max(hold, strike - s0 * exp(cast<double>(2 * i - level) * sigma * sqrt(dt))));
      });
    });
    return v[0];
  };
  const auto plain = [](auto s0, auto sigma, auto r, auto strike, i64 n) {
    using T = decltype(s0);
    const double dt = 1.0 / static_cast<double>(n);
    const T up = exp(sigma * std::sqrt(dt)), down = 1.0 / up, grow = exp(r * dt),
            p = (grow - down) / (up - down);
    std::vector<T> v(n + 1);
    for (i64 i = 0; i <= n; ++i)
      v[i] = max(T(strike - s0 * exp(static_cast<double>(2 * i - n) * sigma * std::sqrt(dt))), T(0.0));
    for (i64 level = n - 1; level >= 0; --level)
      for (i64 i = 0; i <= level; ++i)
        v[i] = max(T((p * v[i + 1] + (1.0 - p) * v[i]) / grow),
                   T(strike - s0 * exp(static_cast<double>(2 * i - level) * sigma * std::sqrt(dt))));
    return v[0];
  };
  auto p =
      checked<double(double, double, double, double, i64), 0, 1, 2, 3>(staged, plain, {.tolerance = 1e-9});
  for (i64 n : {1, 3, 7, 31, 100, 500}) p(100.0, 0.25, 0.04, 103.0, n);
}

}  // namespace
}  // namespace lantern::test
