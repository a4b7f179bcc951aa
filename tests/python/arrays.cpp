// Functions of arrays and trees that test_arrays.py calls, some of names that are words of Python.
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>

using namespace lantern;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

D squares(D c, A x) {
  return FOR(0, x.size(), D(0.0), [&](I i, D s) { return s + c * x[i] * x[i]; });
}
D pick(A x, I i) { return x[i]; }
A counted(I n, D by) {
  return FOR(0, n, fill(D(0.0), n), [&](I i, A a) { return a.set(i, by * cast<double>(i)); });
}
/// As many elements as x has positive ones.
A positive(A x) {
  const I n = FOR(0, x.size(), I(0), [&](I i, I n) { return n + select(x[i] > 0.0, I(1), I(0)); });
  return fill(D(1.0), n);
}
A same(A x) { return x; }
auto twice(A x) {
  const A y = x + 1.0;
  return std::tuple(y, y);
}
M product(M a, M b) { return matmul(a, b); }
Rep<Tensor<double, 2, 3>> fixed(Rep<Tensor<double, 2, 3>> m) { return 2.0 * m; }
Rep<Array<float>> halves(Rep<Array<float>> x) { return 0.5f * x; }
D folded(D x, Rep<Tree<double>> tree) {
  return TREE(x, tree, [](D l, D r, Rep<Tree<double>> node) { return l * r * node.value(); });
}
D norm(A x) { return sqrt(sum(x * x)); }

LANTERN_FUNCTION(squares_gradient, value_and_grad(squares))
LANTERN_FUNCTION(lambda, pick)
LANTERN_FUNCTION(gamma, counted)
LANTERN_FUNCTION(ones_of, positive)
LANTERN_FUNCTION(itself, same)
LANTERN_FUNCTION(both, twice)
LANTERN_FUNCTION(multiply, product)
LANTERN_FUNCTION(doubled, fixed)
LANTERN_FUNCTION(half, halves)
LANTERN_FUNCTION(tree_gradient, value_and_grad<0>(folded))
LANTERN_FUNCTION(times, product)  // the C library has one too
LANTERN_FUNCTION(norm_value, ::norm)
LANTERN_FUNCTION(norm_gradient, grad(::norm))
LANTERN_FUNCTION(norm_hessian, hessian(::norm))
