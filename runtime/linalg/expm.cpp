// The exponential of a matrix.
#include <array>

#include "lantern/runtime/linalg/kernels.h"
#include "lantern/runtime/linalg/lapack.hpp"

namespace lantern::linalg {

namespace {

using Matrix = std::vector<double>;

/// The largest norm at which a diagonal Pade approximant of that degree is exact to double precision, and its
/// coefficients. Source: N. J. Higham, "The scaling and squaring method for the matrix exponential
/// revisited", SIAM J. Matrix Anal. Appl. 26 (2005), table 2.3 and section 2.
struct Approximant {
  double norm;
  std::vector<double> b;
};
const std::array<Approximant, 5>& approximants() {
  static const std::array<Approximant, 5> all{{
      {1.495585217958292e-2, {120, 60, 12, 1}},
      {2.539398330063230e-1, {30240, 15120, 3360, 420, 30, 1}},
      {9.504178996162932e-1, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
      {2.097847961257068e0,
       {17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1}},
      {5.371920351148152e0,
       {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
        10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}},
  }};
  return all;
}

Matrix product(Size n, const Matrix& a, const Matrix& b) {
  Matrix c(a.size());
  gemm<double>(1, false, {a.data(), n, n, n}, false, {b.data(), n, n, n}, 0, {c.data(), n, n, n});
  return c;
}
void add(Matrix& to, double factor, const Matrix& a) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * a[i];
}

/// The largest sum of absolute values of a column.
double norm(Size n, const Matrix& a) {
  double largest = 0;
  for (Size j = 0; j < n; ++j) {
    double sum = 0;
    for (Size i = 0; i < n; ++i) sum += std::abs(a[count(i * n + j)]);
    largest = std::max(largest, sum);
  }
  return largest;
}

/// The approximant (v - u)^-1 (v + u), of which u has the odd powers and v the even ones.
Matrix approximated(Size n, const Matrix& a, const std::vector<double>& b) {
  const Matrix square = product(n, a, a);
  Matrix power(a.size()), odd(a.size()), even(a.size());
  for (Size i = 0; i < n; ++i) power[count(i * n + i)] = 1;
  for (std::size_t k = 0; k < b.size(); k += 2) {
    if (k > 0) power = product(n, power, square);
    add(even, b[k], power);
    add(odd, b[k + 1], power);
  }
  const Matrix u = product(n, a, odd);
  Matrix x = even;
  add(x, 1, u);
  add(even, -1, u);
  std::vector<std::int64_t> p(count(n));
  linalg_lu_f64(1, n, even.data(), p.data());
  linalg_lu_solve_f64(1, n, n, false, even.data(), p.data(), x.data());
  return x;
}

Matrix exponential(Size n, Matrix a) {
  const double size = norm(n, a);
  if (!std::isfinite(size)) return Matrix(a.size(), std::numeric_limits<double>::quiet_NaN());
  for (const Approximant& p : approximants())
    if (size <= p.norm) return approximated(n, a, p.b);
  const Approximant& best = approximants().back();
  const int halvings = std::max(0, static_cast<int>(std::ceil(std::log2(size / best.norm))));
  for (double& x : a) x = std::ldexp(x, -halvings);
  Matrix x = approximated(n, a, best.b);
  for (int i = 0; i < halvings; ++i) x = product(n, x, x);
  return x;
}

/// In double precision for both types.
template <class T>
void expm(Size batch, Size n, T* a) {
  for (Size b = 0; b < batch; ++b, a += n * n) {
    const Matrix x = exponential(n, Matrix(a, a + n * n));
    std::transform(x.begin(), x.end(), a, [](double v) { return static_cast<T>(v); });
  }
}

}  // namespace

extern "C" {
LINALG_EXPM(double, f64) { expm(batch, n, a); }
LINALG_EXPM(float, f32) { expm(batch, n, a); }
}

}  // namespace lantern::linalg
