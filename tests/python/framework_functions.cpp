// Functions that test_jax.py and test_torch.py call inside of JAX and PyTorch.
#include <lantern/lantern.hpp>

using namespace lantern;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

// A number of numbers.
D wave(D x, D y) { return sin(x) * exp(y) + x * x * y; }
// The energy of a chain of springs.
D chain(A x, D stiffness) {
  return FOR(1, x.size(), D(0.0), [&](I i, D s) {
    const D stretch = x[i] - x[i - 1];
    return s + stiffness * stretch * stretch + 0.1 * cos(x[i]);
  });
}
auto layer(M w, A x) {
  const M y = tanh(w);
  return std::tuple(FOR(0, w.dim(0), fill(D(0.0), w.dim(0)),
                        [&](I i, A out) {
                          return out.set(i, FOR(0, x.size(), D(0.0), [&](I k, D s) { return s + y(i, k) * x[k]; }));
                        }),
                    sum(w));
}
A powers(D x, I n) {
  return std::get<0>(FOR(0, n, std::tuple(fill(D(0.0), n), D(1.0)),
                         [&](I i, A a, D p) { return std::tuple(a.set(i, p), p * x); }));
}
D pick(A x, I i) { return x[i] * x[i]; }
I count(A x) {
  return FOR(0, x.size(), I(0), [&](I i, I n) { return n + select(x[i] > 0.0, I(1), I(0)); });
}
Rep<Array<float>> halves(Rep<Array<float>> x) { return 0.5f * x * x; }

LANTERN_FUNCTION(wave_, wave)
LANTERN_FUNCTION(energy, chain)
LANTERN_FUNCTION(two_results, layer)
LANTERN_FUNCTION(series, powers)
LANTERN_FUNCTION(element, pick)
LANTERN_FUNCTION(positive, count)
LANTERN_FUNCTION(half_squares, halves)
