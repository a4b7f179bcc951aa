// Shapes that do not fit where C++ types do not tell: a mistake in each function.
#include <lantern/lantern.hpp>

using namespace lantern;

using Vector = Rep<Tensor<double, 3>>;
using Pair = Rep<Tensor<double, 2>>;
using Matrix = Rep<Tensor<double, 2, 3>>;
using Any = Rep<Tensor<double>>;

Rep<double> product(Matrix a) { return sum(matmul(a, a)); }

Rep<double> addition(Matrix a, Vector x) {
  Any doubled = 2.0 * x;
  return sum(exp(doubled) + (matmul(a, x) + doubled));
}

Rep<double> in_a_loop(Vector x, Pair y) {
  Rep<double> total = 0.0;
  for (Rep<std::int64_t> i = 0; i < 3; ++i) {
    if (total > 1.0) continue;
    total += x(i) * dot(x, exp(y));
  }
  return total;
}

template <class T>
Rep<double> general(const Rep<T>& first, Pair second) {
  Any twice = first;
  twice *= 2.0;
  twice -=
      Any(second);
  return sum(twice);
}

Rep<double> branches(Matrix a, Pair y) {
  auto chosen = IF(
      sum(a) > 0.0, [&] { return Any(a * 2.0); }, [&] { return Any(y); });
  return sum(chosen);
}

Rep<double> state(Matrix a, Vector x) {
  auto end = FOR(0, 3, Any(x), [&](Rep<std::int64_t>, Any y) { return outer(y, y); });
  return sum(end);
}

LANTERN_FUNCTION(dproduct, grad(product))
LANTERN_FUNCTION(daddition, grad(addition))
LANTERN_FUNCTION(dloop, grad(in_a_loop))
LANTERN_FUNCTION(dgeneral, grad(general<Tensor<double, 3>>))
LANTERN_FUNCTION(dbranches, grad(branches))
LANTERN_FUNCTION(dstate, grad(state))
