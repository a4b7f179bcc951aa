// Each moves so many bytes: lanternc_reports_test.cpp.
#include <lantern/lantern.hpp>
using namespace lantern;
using Vector = Rep<Array<double>>;
using Matrix = Rep<Tensor<double, dyn, dyn>>;
using Index = Rep<int64_t>;

Rep<double> squares(Vector a) {
  Rep<double> s = 0.0;
  FOR(0, a.size(), [&](Index i) { s += a[i] * a[i]; });
  return s;
}
// The vector stays in the cache, the matrix is read once.
Vector product(Matrix a, Vector x) {
  Vector y = fill(Rep<double>(0.0), a.dim(0));
  FOR(0, a.dim(0), [&](Index i) {
    Rep<double> s = 0.0;
    FOR(0, a.dim(1), [&](Index j) { s += a(i, j) * x[j]; });
    y = y.set(i, s);
  });
  return y;
}
// Half of the matrix.
Rep<double> triangle(Matrix a) {
  Rep<double> s = 0.0;
  FOR(0, a.dim(0), [&](Index i) { FOR(0, i, [&](Index j) { s += a(i, j); }); });
  return s;
}
// Each step reads and writes all of it.
Vector steps(Vector u, Index count) {
  FOR(0, count, [&](Index) { FOR(1, u.size(), [&](Index i) { u = u.set(i, 0.5 * u[i] + 0.5 * u[i - 1]); }); });
  return u;
}
// Where the elements lie is data.
Vector histogram(Rep<Array<int64_t>> bin, Vector count) {
  FOR(0, bin.size(), [&](Index i) { count = count.set(bin[i], count[bin[i]] + 1.0); });
  return count;
}
Rep<double> number(Rep<double> x) { return x * x; }

LANTERN_FUNCTION(f_squares, squares)
LANTERN_FUNCTION(f_product, product)
LANTERN_FUNCTION(f_triangle, triangle)
LANTERN_FUNCTION(f_steps, steps)
LANTERN_FUNCTION(f_histogram, histogram)
LANTERN_FUNCTION(f_number, number)
int main() { return 0; }
