// A sum with enough iterations to be shared out, and the failure of one of them.
#include <cmath>
#include <cstdio>
#include <vector>

#include "lantern/lantern.hpp"

using lantern::Array;
using lantern::Rep;

Rep<double> energy(Rep<Array<double>> x, Rep<Array<std::int64_t>> at) {
  return lantern::FOR(0, at.size(), 0.0, [&](Rep<std::int64_t> i, Rep<double> sum) {
    return sum + sin(x[at[i]]) * exp(x[at[i]]);
  });
}
LANTERN_FUNCTION(slope, lantern::value_and_grad<0>(energy))

int main() {
  std::vector<double> x(7);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1 * static_cast<double>(i);
  std::vector<std::int64_t> at(100'000);
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i % x.size());
  const auto [y, dx] = slope(x, at);
  std::printf("%.15g\n%.15g\n", y, dx[3]);
  at[60'000] = 9;
  try {
    slope(x, at);
  } catch (const lantern::Error& e) {
    std::puts(e.what());
  }
}
