// The first example of README.md: five programs, their derivatives, and the ways to call them.
#include <fmt/core.h>
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> f(Rep<double> x) { return 2.0 * x + x * x * x; }
Rep<double> g(Rep<double> x) { return IF(x > 0.0, [&] { return -1.0 * x * x; }, [&] { return x * x; }); }
Rep<double> h(Rep<double> x) { return WHILE(x, [](Rep<double> t) { return t > 1.0; }, [](Rep<double> t) { return t * 0.5; }); }
Rep<double> t(Rep<double> x, Rep<Tree<double>> tree) {
  return TREE(x, tree, [&](Rep<double> l, Rep<double> r, Rep<Tree<double>> node) { return l * r * node.value(); });
}
auto power = FUN<double(double, int64_t)>("power", [](auto self, Rep<double> x, Rep<int64_t> n) {
  return IF(n == 0, [&] { return Rep<double>(1.0); }, [&] { return x * self(x, n - 1); });
});

LANTERN_FUNCTION(df, grad(f))                 // a C++ function double df(double)
LANTERN_FUNCTION(dg, grad(g))
LANTERN_FUNCTION(dh, grad(h))
LANTERN_FUNCTION(dt, grad(t))
LANTERN_FUNCTION(dpower, value_and_grad(power))
LANTERN_FUNCTION(hf, hvp(f))                  // second derivative times a vector

int main() {
  fmt::print("f'(3) = {}\n", df(3.0));
  fmt::print("g'(3) = {}, g'(-3) = {}\n", dg(3.0), dg(-3.0));
  fmt::print("h'(10) = {}\n", dh(10.0));
  fmt::print("dt/dx at 3 = {}\n", dt(3.0, Tree<double>(2.0, Tree<double>(5.0), Tree<double>())));
  const auto [y, dy] = dpower(2.0, 5);
  fmt::print("2^5 = {}, slope {}\n", y, dy);
  fmt::print("f''(3) = {}\n", hf(3.0, 1.0));
  fmt::print("f'(3) = {}, computed by running the program\n", eager(grad(f))(3.0));
}
