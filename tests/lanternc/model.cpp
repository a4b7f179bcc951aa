// Every kind of function that lanternc builds. Linked with the library it prints the same numbers.
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include "lantern/lantern.hpp"

using namespace lantern;

template <class T>
struct Point {
  T x, y;
};

Rep<double> cubic(Rep<double> x) { return 2.0 * x + x * x * x; }
Rep<double> halved(Rep<double> x) {
  return WHILE(
      x, [](Rep<double> t) { return t > 1.0; }, [](Rep<double> t) { return t * 0.5; });
}
const auto power =
    FUN<double(double, std::int64_t)>("power", [](auto self, Rep<double> x, Rep<std::int64_t> n) {
      return IF(
          n == 0, [&] { return Rep<double>(1.0); }, [&] { return x * self(x, n - 1); });
    });
Rep<double> energy(Rep<Array<double>> v) { return sum(v * v * v); }
Rep<double> product(Rep<double> x, Rep<Tree<double>> tree) {
  return TREE(x, tree,
              [](Rep<double> l, Rep<double> r, Rep<Tree<double>> node) { return l * r * node.value(); });
}
Point<Rep<double>> turned(Point<Rep<double>> p, Rep<double> s) { return {p.x * s - p.y, p.x + p.y * s}; }
Rep<double> row_sum(Rep<Tensor<double, dyn, 2>> a) { return a(0, 0) * a(0, 1) + sum(a); }

LANTERN_FUNCTION(dcubic, grad(cubic))
LANTERN_FUNCTION(dhalved, grad(halved))
LANTERN_FUNCTION(dpower, grad(power))
LANTERN_FUNCTION(denergy, grad(energy))
LANTERN_FUNCTION(dproduct, grad(product))
LANTERN_FUNCTION(turn, turned)
LANTERN_FUNCTION(drow_sum, grad(row_sum))
namespace inner {
LANTERN_FUNCTION(both, value_and_grad(cubic))
LANTERN_FUNCTION(log, cubic)
}  // namespace inner

int main() {
  double (*const pointer)(double) = &dcubic;
  std::printf("%.15g\n%.15g\n%.15g\n", pointer(3.0), dhalved(5.0), dpower(1.5, 5));
  const std::vector<double> v{1.0, 2.0, 3.0};
  for (const double d : denergy(v)) std::printf("%.15g\n", d);
  std::printf("%.15g\n", dproduct(0.5, Tree<double>(2.0, Tree<double>(3.0), Tree<double>())));
  const Point<double> p = turn({1.0, 2.0}, 3.0);
  std::printf("%.15g\n%.15g\n", p.x, p.y);
  const std::vector<double> a{1.0, 2.0, 3.0, 4.0};
  const TensorValue<double> da = drow_sum(TensorView<const double>(a.data(), {2, 2}));
  for (const double d : da.data) std::printf("%.15g\n", d);
  std::printf("%lld\n", static_cast<long long>(da.shape.at(0)));
  const auto [value, derivative] = inner::both(2.0);
  std::printf("%.15g\n%.15g\n%.15g\n", value, derivative, inner::log(2.0));
  std::printf("%.15g\n", eager(grad(cubic))(3.0));
  try {
    std::printf("%.15g\n", compile(grad(cubic))(3.0));
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
  }
}
