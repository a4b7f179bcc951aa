// Functions of numbers that test_numbers.py calls: of every kind, with comments of every kind, and one that recurs.
#include <lantern/lantern.hpp>

using namespace lantern;
using D = Rep<double>;
using I = Rep<std::int64_t>;

/// The cube of x.
///
/// A second "paragraph" with a \ in it.
D cube(D x) { return x * x * x; }

// Ten numbers, weighted.
D weighted(D a, D b, D c, D d, D e, D f, D g, D h, D i, D j) {
  return a * b + sin(c * d) + e * f * g + exp(-h) * i + j * j * a;
}

auto kinds(D x, Rep<bool> b, I i, Rep<std::int32_t> n, Rep<float> f) {
  return std::tuple(x + 1.0, !b, i * 2, n + 1, f * 2.0f);
}
// Deep in the stack.
const auto down = FUN<double(double, std::int64_t)>("down", [](auto self, D x, I n) {
  return IF(
      n == 0, [] { return D(1.0); }, [&] { return x + self(x, n - 1) * 0.5; });
});

LANTERN_FUNCTION(value, cube)
// The slope.
LANTERN_FUNCTION(slope, grad(cube))
LANTERN_FUNCTION(curvature, grad(grad(cube)))  // the second derivative
LANTERN_FUNCTION(ten, weighted)
LANTERN_FUNCTION(ten_gradient, value_and_grad(weighted))
LANTERN_FUNCTION(all_kinds, kinds)
LANTERN_FUNCTION(recursion, down)
