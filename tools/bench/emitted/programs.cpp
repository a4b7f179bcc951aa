// Programs whose emitted C++ the benchmark 'emitted' compiles with g++ and measures beside lanternc's own code: each takes
// an array and a size n, and gives a number.
#include <lantern/lantern.hpp>
using namespace lantern;
using D = Rep<double>;
using I = Rep<int64_t>;
using A = Rep<Array<double>>;

D bodies(A x, I n) {
  return FOR(0, n, D(0.0), [&](I i, D s) {
    return FOR(0, n, s, [&](I j, D t) {
      D dx = x[3 * i] - x[3 * j], dy = x[3 * i + 1] - x[3 * j + 1], dz = x[3 * i + 2] - x[3 * j + 2];
      D r2 = dx * dx + dy * dy + dz * dz + 0.01;
      return t + 1.0 / (r2 * sqrt(r2));
    });
  });
}
D stencil(A x, I n) {
  A u = FOR(0, 10, x, [&](I, A v) {
    return FOR(1, n - 1, v, [&](I i, A w) {
      return FOR(1, n - 1, w, [&](I j, A z) {
        D c = v[i * n + j];
        return z.set(i * n + j, c + 0.1 * (v[i * n + j - 1] + v[i * n + j + 1] + v[(i - 1) * n + j] + v[(i + 1) * n + j] - 4.0 * c) * c);
      });
    });
  });
  return sum(u * u);
}
D options(A x, I n) {
  return FOR(0, n * n, D(0.0), [&](I i, D s) {
    D S = 90.0 + 20.0 * x[i], K = 100.0, v = 0.2 + 0.1 * x[i], T = 1.0;
    D d1 = (log(S / K) + (0.03 + 0.5 * v * v) * T) / (v * sqrt(T)), d2 = d1 - v * sqrt(T);
    return s + S * 0.5 * erfc(-0.7071067811865475 * d1) - K * exp(-0.03 * T) * 0.5 * erfc(-0.7071067811865475 * d2);
  });
}
D softmax(A x, I n) {
  return FOR(0, n, D(0.0), [&](I i, D s) {
    D m = FOR(0, n, D(-1e300), [&](I j, D q) { return max(q, x[i * n + j]); });
    D z = FOR(0, n, D(0.0), [&](I j, D q) { return q + exp(x[i * n + j] - m); });
    return s + log(z) + m - x[i * n + i];
  });
}
D product(A x, I n) {
  A c = FOR(0, n, fill(D(0.0), n * n), [&](I i, A a) {
    return FOR(0, n, a, [&](I k, A b) {
      return FOR(0, n, b, [&](I j, A r) { return r.set(i * n + j, r[i * n + j] + x[i * n + k] * x[k * n + j]); });
    });
  });
  return sum(c * c);
}
D recurrence(A x, I n) {
  return FOR(0, n * n, D(0.5), [&](I i, D h) { return tanh(0.9 * h + x[i]); });
}
D rosenbrock(A x, I n) {
  return FOR(0, n * n - 1, D(0.0), [&](I i, D s) {
    D a = x[i + 1] - x[i] * x[i], b = 1.0 - x[i];
    return s + 100.0 * a * a + b * b;
  });
}
D whole(A x, I n) { return sum(exp(0.1 * x) * x + sin(x)) + dot(x, x) + logsumexp(x); }
#define BOTH(f) LANTERN_FUNCTION(o_##f, f) LANTERN_FUNCTION(g_##f, grad(f))
BOTH(bodies) BOTH(stencil) BOTH(options) BOTH(softmax) BOTH(product) BOTH(recurrence) BOTH(rosenbrock) BOTH(whole)
