// What docs/native_control_flow.md shows, compiled by lanternc and run.
#include <cmath>
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> root(Rep<double> a) {
  Rep<double> x = a;
  while (true) {
    Rep<double> next = 0.5 * (x + a / x);
    if (abs(next - x) < 1e-12) return next;
    x = next;
  }
}
LANTERN_FUNCTION(root_slope, value_and_grad(root))

int main() {
  const auto [x, slope] = root_slope(9.0);
  return std::abs(x - 3) < 1e-9 && std::abs(slope - 1.0 / 6) < 1e-9 ? 0 : 1;
}
