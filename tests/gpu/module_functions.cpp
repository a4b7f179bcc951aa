// Functions that test_modules_torch.py and test_modules_jax.py call inside of PyTorch and JAX, on the launch emulator.
#include <lantern/lantern.hpp>
#include <lantern/tensor.hpp>

using namespace lantern;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

// The energy of a chain of springs.
D chain(A x, D stiffness) {
  return FOR(1, x.size(), D(0.0), [&](I i, D s) {
    const D stretch = x[i] - x[i - 1];
    return s + stiffness * stretch * stretch + 0.1 * cos(x[i]);
  });
}
// A layer, and the sum of its weights.
auto layer(M w, M x) { return std::tuple(tanh(matmul(w, x)), sum(w)); }
A powers(D x, I n) {
  return std::get<0>(FOR(0, n, std::tuple(fill(D(0.0), n), D(1.0)),
                         [&](I i, A a, D p) { return std::tuple(a.set(i, p), p * x); }));
}
// Rows of a table by their numbers, squared.
M rows(M table, Rep<Array<std::int64_t>> at) {
  return tabulate([&](I i, I j) { return table(at[i], j) * table(at[i], j); }, at.size(), table.dim(1));
}

LANTERN_FUNCTION(energy, chain)
#ifndef FOR_JAX  // for which more derivatives of each are compiled
LANTERN_FUNCTION(two_results, layer)
#endif
LANTERN_FUNCTION(series, powers)
LANTERN_FUNCTION(squared_rows, rows)
