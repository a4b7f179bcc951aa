// A model with native control flow, as lanternc's users write one.
#include <cstdio>
#include <lantern/lantern.hpp>

#include "model_parts.hpp"

using namespace lantern;

namespace {

int plain(int n) { return n > 2 && n < 9 ? n : -n; }

Rep<double> newton(Rep<double> a) {
  Rep<double> x = a;
  while (true) {
    Rep<double> next = 0.5 * (x + a / x);
    if (abs(next - x) < 1e-14) return next;
    x = next;
  }
}

Rep<double> hinge(Rep<double> x) {
  if (x > 1.0) return scale() * x;
  return x * plain(4);
}

Rep<double> factorial(Rep<double> n) {
  if (n < 1.5) return 1.0;
  return n * factorial(n - 1.0);
}

}  // namespace

LANTERN_FUNCTION(root, value_and_grad(newton))
LANTERN_FUNCTION(loss, value_and_grad(hinge))
LANTERN_FUNCTION(product, value_and_grad(factorial))

int main() {
  const auto print = [](const auto& f, double x) {
    const auto [y, slope] = f(x);
    std::printf("%.12g %.12g\n", y, slope);
  };
  print(root, 9.0);
  print(loss, 2.0);
  print(loss, 0.5);
  print(product, 4.0);
  std::printf("%d %d\n", plain(3), plain(11));
}
