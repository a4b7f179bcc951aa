// Functions that programs in Fortran and Octave call.
#include <lantern/lantern.hpp>

using namespace lantern;
using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using T = Rep<Tensor<double, dyn, dyn, dyn>>;

D wave(D x, D y) { return sin(x) * exp(y) + x * x * y; }
// The energy of a chain of springs.
D chain(A x, D stiffness) {
  return FOR(1, x.size(), D(0.0), [&](I i, D s) {
    const D stretch = x[i] - x[i - 1];
    return s + stiffness * stretch * stretch + 0.1 * cos(x[i]);
  });
}
A times(M w, A x) {
  return FOR(0, w.dim(0), fill(D(0.0), w.dim(0)), [&](I i, A out) {
    return out.set(i, FOR(0, x.size(), D(0.0), [&](I k, D s) { return s + w(i, k) * x[k]; }));
  });
}
D quadratic(M w, A x) { return FOR(0, x.size(), D(0.0), [&](I i, D s) { return s + x[i] * times(w, x)[i]; }); }
D element(T t, I i, I j, I k) { return t(i, j, k); }
T doubled(T t) { return 2.0 * t; }
A powers(D x, I n) {
  return std::get<0>(FOR(0, n, std::tuple(fill(D(0.0), n), D(1.0)),
                         [&](I i, A a, D p) { return std::tuple(a.set(i, p), p * x); }));
}
auto larger(A x, D bound) {
  const I n = FOR(0, x.size(), I(0), [&](I i, I n) { return n + select(x[i] > bound, I(1), I(0)); });
  return std::tuple(n, n > 0);
}
Rep<Array<float>> halves(Rep<Array<float>> x) { return 0.5f * x * x; }
Rep<std::int32_t> next(Rep<std::int32_t> n, Rep<bool> up) { return select(up, n + 1, n - 1); }

// Deep in the stack.
const auto down = FUN<double(double, std::int64_t)>("down", [](auto self, D x, I n) {
  return IF(
      n == 0, [] { return D(1.0); }, [&] { return x + self(x, n - 1) * 0.5; });
});

LANTERN_FUNCTION(wave_gradient, value_and_grad(wave))
LANTERN_FUNCTION(energy, chain)
LANTERN_FUNCTION(energy_gradient, grad(chain))
LANTERN_FUNCTION(product, times)
LANTERN_FUNCTION(quadratic_gradient, grad(quadratic))
LANTERN_FUNCTION(at, element)
LANTERN_FUNCTION(twice, doubled)
LANTERN_FUNCTION(series, powers)
LANTERN_FUNCTION(count, larger)
LANTERN_FUNCTION(half_squares, halves)
LANTERN_FUNCTION(step, next)
LANTERN_FUNCTION(recursion, down)
