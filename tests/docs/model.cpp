// model.cpp
#include <fmt/core.h>
#include <lantern/lantern.hpp>

using namespace lantern;

/// The square root of a, by n steps of Newton's method.
Rep<double> root(Rep<double> a, Rep<int64_t> n) {
  Rep<double> x = a;
  for (Rep<int64_t> i = 0; i < n; ++i) x = 0.5 * (x + a / x);
  return x;
}
LANTERN_FUNCTION(root_slope, value_and_grad(root))  // a C++ function, of double and int64_t

int main() {
  const auto [x, slope] = root_slope(9.0, 20);
  fmt::print("root {}, slope {}\n", x, slope);
}
