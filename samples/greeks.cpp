// The price of an option and its Greeks, which are the derivatives of the price.
//
//   greeks         prints them
//   greeks FILE    also draws delta and gamma into an .svg file
//
// A European call has a formula (Black and Scholes 1973); an Asian one, paid by the mean of the price over
// time, is averaged over random paths. docs/tutorials/greeks.md tells this program step by step.
#include <fmt/core.h>

#include <cmath>
#include <lantern/random.hpp>
#include <lantern/solvers.hpp>
#include <lantern/tensor.hpp>
#include <string>
#include <vector>

#include "chart.hpp"

using namespace lantern;

// [formula]
using D = Rep<double>;
using I = Rep<int64_t>;

/// The distribution function of the standard normal law.
D normal_cdf(D x) { return 0.5 * erfc(-x / std::sqrt(2.0)); }

/// A call: price of the stock, strike, volatility, interest rate, years.
D call(D spot, D strike, D volatility, D rate, D years) {
  const D deviation = volatility * sqrt(years);
  const D d1 = (log(spot / strike) + rate * years) / deviation + 0.5 * deviation;
  return spot * normal_cdf(d1) - strike * exp(-rate * years) * normal_cdf(d1 - deviation);
}
// [/formula]

// [greeks]
LANTERN_FUNCTION(call_greeks, value_and_grad<0, 2, 3, 4>(call))  // price; delta, vega, rho, minus theta
LANTERN_FUNCTION(call_gamma, grad<0>(grad<0>(call)))
// [/greeks]

// [implied]
/// The volatility at which the formula gives a price that is seen in the market.
D implied_volatility(D price, D spot, D strike, D rate, D years) {
  const auto off = [](D volatility, D p, D s, D k, D r, D t) { return call(s, k, volatility, r, t) - p; };
  return solvers::newton(off, D(0.2), price, spot, strike, rate, years).x;
}
LANTERN_FUNCTION(implied, value_and_grad<0>(implied_volatility))
// [/implied]

// [paths]
constexpr int64_t paths = 20000, months = 12;

/// The mean over paths of what an Asian call pays; each path is a loop over months.
D asian(D spot, D strike, D volatility, D rate, D years) {
  const D step = years / double(months), drift = (rate - 0.5 * volatility * volatility) * step;
  const D deviation = volatility * sqrt(step);
  const auto noise = random::normal<double>(random::Key(7), paths, months);
  const D paid = FOR(0, paths, D(0.0), [&](I path, D all) {
    const auto [price, sum] = FOR(0, months, std::tuple(spot, D(0.0)), [&](I month, D now, D so_far) {
      const D next = now * exp(drift + deviation * noise(path, month));
      return std::tuple(next, so_far + next);
    });
    return all + max(sum / double(months) - strike, 0.0);
  });
  return exp(-rate * years) * paid / double(paths);
}
LANTERN_FUNCTION(asian_greeks, value_and_grad<0, 2, 3, 4>(asian))
LANTERN_FUNCTION(asian_price, asian)
// [/paths]

int main(int argc, char** argv) {
  // [print]
  const double strike = 100, volatility = 0.2, rate = 0.03, years = 1;
  const auto show = [](const char* name, const auto& greeks) {
    const auto& [price, slopes] = greeks;
    const auto& [delta, vega, rho, minus_theta] = slopes;
    fmt::print("{:<9} price {:.3f}  delta {:.3f}  vega {:.2f}  rho {:.2f}  theta {:.2f}\n", name, price,
               delta, vega, rho, -minus_theta);
  };
  show("European", call_greeks(105.0, strike, volatility, rate, years));
  show("Asian", asian_greeks(105.0, strike, volatility, rate, years));
  fmt::print("gamma of the European call: {:.4f}\n", call_gamma(105.0, strike, volatility, rate, years));
  const auto [found, slope] = implied(12.0, 105.0, strike, rate, years);
  fmt::print("a price of 12 means a volatility of {:.4f}; one more means {:.4f} more\n", found, slope);
  // [/print]

  // The closed formulas of delta, gamma and vega, and a difference for the mean over paths.
  const double d1 = (std::log(105.0 / strike) + rate * years) / volatility + 0.5 * volatility;
  const double density = std::exp(-0.5 * d1 * d1) / std::sqrt(2 * 3.14159265358979323846);
  const auto [price, slopes] = call_greeks(105.0, strike, volatility, rate, years);
  const auto near = [](double a, double b, double off) { return std::abs(a - b) <= off * std::abs(b); };
  const double h = 1e-5;
  const auto vegas = std::get<1>(std::get<1>(asian_greeks(105.0, strike, volatility, rate, years)));
  const double by_difference = (asian_price(105.0, strike, volatility + h, rate, years) -
                                asian_price(105.0, strike, volatility - h, rate, years)) /
                               (2 * h);
  const bool right =
      near(std::get<0>(slopes), 0.5 * std::erfc(-d1 / std::sqrt(2.0)), 1e-12) &&
      near(std::get<1>(slopes), 105.0 * density, 1e-12) &&
      near(call_gamma(105.0, strike, volatility, rate, years), density / (105.0 * volatility), 1e-12) &&
      near(std::get<0>(call_greeks(105.0, strike, found, rate, years)), 12.0, 1e-9) &&
      near(vegas, by_difference, 1e-2);

  if (argc > 1) {
    Chart chart;
    Chart::Points delta, asian_delta, gamma;
    for (double spot = 60; spot <= 140; spot += 2) {
      delta.emplace_back(spot, std::get<0>(std::get<1>(call_greeks(spot, strike, volatility, rate, years))));
      asian_delta.emplace_back(spot,
                               std::get<0>(std::get<1>(asian_greeks(spot, strike, volatility, rate, years))));
      gamma.emplace_back(spot, 20 * call_gamma(spot, strike, volatility, rate, years));
    }
    chart.line(delta, "#1f77b4", "delta");
    chart.line(asian_delta, "#d62728", "delta, Asian");
    chart.line(gamma, "#2ca02c", "20 gamma");
    chart.write(argv[1], "an option with strike 100", "price of the stock");
  }
  if (right) return 0;
  fmt::print("expected the Greeks of the formulas, and of differences\n");
  return 1;
}
