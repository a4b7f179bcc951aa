// Derivatives of <lantern/linalg.hpp>: forward and reverse mode beside each other and beside differences,
// second order, in batches and in float; eager and compiled.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <lantern/lantern.hpp>
#include <lantern/linalg.hpp>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

using namespace lantern;
namespace la = lantern::linalg;

namespace {

template <class T>
using M = Rep<Tensor<T, dyn, dyn>>;
template <class T>
using B = Rep<Tensor<T, dyn, dyn, dyn>>;
template <class T>
using Bs = Rep<Tensor<T, dyn, dyn, dyn, dyn>>;
/// A number that depends on all results, and whose second derivatives are not zero.
template <class T>
auto all_of(const Rep<T>& t) {
  if constexpr (std::is_floating_point_v<T>)
    return sin(t) + 0.5 * t * t;
  else
    return sum(sin(t) + 0.5 * t * t);
}

template <class T>
TensorValue<T> random_tensor(std::vector<int64_t> shape, unsigned seed, T diagonal = 0) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> number(-0.5, 0.5);
  TensorValue<T> t(shape);
  const int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  for (std::size_t i = 0; i < t.data.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    t[i] = static_cast<T>(number(engine)) + (place / columns % rows == place % columns ? diagonal : T(0));
  }
  return t;
}
template <class T>
TensorValue<T> moved(TensorValue<T> x, const TensorValue<T>& v, T step) {
  for (std::size_t i = 0; i < x.data.size(); ++i) x[i] += step * v[i];
  return x;
}
template <class T>
double inner(const TensorValue<T>& a, const TensorValue<T>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}
void check_close(double a, double b, double tolerance) {
  CHECK(std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)}));
}

/// A function of tensors, and its derivatives at x in the direction v: of second order by forward over
/// reverse mode, and by reverse mode twice.
template <class X>
using Function = std::function<Rep<core::detail::element_t<typename X::value_type>>(X)>;
template <class X>
auto derivatives(const Function<X>& f) {
  const auto slope = [f](X x, X v) { return sum(grad(f)(x) * v); };
  return [=](X x, X v) {
    return std::tuple(value_and_grad(f)(x), jvp(f)(x, v), hvp(f)(x, v), grad<0>(slope)(x, v));
  };
}

/// `clang`: through Clang as well, which takes longest.
template <class X>
void check(const std::string& name, const Function<X>& f, const TensorValue<double>& x, bool clang = false) {
  CAPTURE(name);
  const TensorValue<double> v = random_tensor<double>(x.shape, 77);
  const auto run = eager(derivatives<X>(f));
  const auto [vg, jv, hv, twice] = run(x, v);
  const auto& [y, g] = vg;
  const auto& [y2, dy] = jv;
  CHECK(std::isfinite(y));
  check_close(y, y2, 1e-12);
  check_close(dy, inner(g, v), 1e-9);
  constexpr double h = 1e-5;
  const auto value = eager(f);
  check_close(dy, (value(moved(x, v, h)) - value(moved(x, v, -h))) / (2 * h), 1e-6);
  const auto slope = eager(grad(f));
  const auto up = slope(moved(x, v, h)), down = slope(moved(x, v, -h));
  for (std::size_t i = 0; i < g.data.size(); ++i) {
    check_close(hv[i], (up[i] - down[i]) / (2 * h), 2e-5);
    check_close(twice[i], hv[i], 1e-8);
  }

  const auto [vg_c, jv_c, hv_c, twice_c] = compile(derivatives<X>(f), {.target = Target::c, .opt = 0})(x, v);
  check_close(std::get<0>(vg_c), y, 1e-11);
  check_close(std::get<1>(jv_c), dy, 1e-9);
  for (std::size_t i = 0; i < g.data.size(); ++i) {
    check_close(std::get<1>(vg_c)[i], g[i], 1e-9);
    check_close(hv_c[i], hv[i], 1e-8);
    check_close(twice_c[i], hv[i], 1e-8);
  }
  if (!clang) return;
  const auto [y_cpp, g_cpp] = compile(value_and_grad(f), {.target = Target::cpp})(x);
  check_close(y_cpp, y, 1e-11);
  for (std::size_t i = 0; i < g.data.size(); ++i) check_close(g_cpp[i], g[i], 1e-9);
}

/// In float, beside the same in double.
void check_float(const std::string& name, const Function<M<float>>& f, const Function<M<double>>& exact,
                 const TensorValue<double>& x) {
  CAPTURE(name);
  const TensorValue<float> narrow(std::vector<float>(x.data.begin(), x.data.end()), x.shape);
  const auto [y, g] = eager(value_and_grad(f))(narrow);
  const auto [y_c, g_c] = compile(value_and_grad(f), {.target = Target::c, .opt = 0})(narrow);
  const auto [y_exact, g_exact] = eager(value_and_grad(exact))(x);
  check_close(static_cast<double>(y), y_exact, 1e-4);
  check_close(static_cast<double>(y_c), y_exact, 1e-4);
  for (std::size_t i = 0; i < g.data.size(); ++i) {
    check_close(static_cast<double>(g[i]), g_exact[i], 5e-3);
    check_close(static_cast<double>(g_c[i]), g_exact[i], 5e-3);
  }
}

template <class T>
M<T> transposed(const M<T>& a) {
  return transpose(a);
}
template <class T>
B<T> transposed(const B<T>& a) {
  return permute<0, 2, 1>(a);
}
template <class T>
Bs<T> transposed(const Bs<T>& a) {
  return permute<0, 1, 3, 2>(a);
}
/// Positive definite, where the diagonal of a is large enough.
template <class X>
X definite(const X& a) {
  return a + transposed(a);
}

template <class X>
struct Case {
  const char* name;
  Function<X> f;
  bool clang = false;
};
/// Programs of square matrices, and of batches.
template <class X>
std::vector<Case<X>> of_both() {
  return {
      {"product", [](X a) { return all_of(X(la::product(a, la::product(a, a)))); }},
      {"cholesky", [](X a) { return all_of(X(la::cholesky(definite(a)))); }, true},
      {"cholesky_solve", [](X a) { return all_of(X(la::cholesky_solve(la::cholesky(definite(a)), a))); }},
      {"solve", [](X a) { return all_of(X(la::solve(a, a * a))); }, true},
      {"inverse", [](X a) { return all_of(X(la::inverse(a))); }},
      {"det", [](X a) { return all_of(0.01 * la::det(a)); }},
      {"logdet", [](X a) { return all_of(la::logdet(definite(a))); }},
      {"slogdet",
       [](X a) {
         const auto d = la::slogdet(-1.0 * a);
         return all_of(d.log * d.sign);
       }},
      {"lu, with exchanges", [](X a) { return all_of(X(la::lu(cos(5.0 * a)).factors)); }},
      {"lu_solve", [](X a) { return 0.01 * all_of(X(la::lu_solve(la::lu(cos(5.0 * a)), a * a))); }},
      {"eigenvalues", [](X a) { return all_of(la::eigh(definite(a)).values); }},
      {"eigenvectors",
       [](X a) {
         const X v = la::eigh(definite(a)).vectors;
         return all_of(v * v);
       },
       true},
  };
}
/// Of matrices that need not be square, but for expm, and of batches.
template <class X>
std::vector<Case<X>> of_rectangles() {
  return {
      {"qr",
       [](X a) {
         const auto [q, r] = la::qr(a);
         return all_of(X(q)) + all_of(X(r));
       },
       true},
      {"svd",
       [](X a) {
         const auto [u, s, vt] = la::svd(a);
         const X u2 = X(u) * X(u), v2 = X(vt) * X(vt);
         return all_of(u2) + all_of(s) + all_of(v2) + all_of(X(la::product(u, vt)));
       },
       true},
      {"expm", [](X a) { return all_of(X(la::expm(0.3 * a))) + 0.01 * all_of(X(la::expm(a))); }, true},
  };
}

}  // namespace

TEST_CASE("linear algebra: derivatives of functions of square matrices") {
  const auto a = random_tensor<double>({5, 5}, 1, 3);
  for (const auto& c : of_both<M<double>>()) check<M<double>>(c.name, c.f, a, c.clang);
  for (const auto& c : of_rectangles<M<double>>()) check<M<double>>(c.name, c.f, a, c.clang);
}

TEST_CASE("linear algebra: derivatives of functions of batches") {
  const auto a = random_tensor<double>({2, 3, 3}, 2, 3);
  for (const auto& c : of_both<B<double>>()) check<B<double>>(c.name, c.f, a);
  for (const auto& c : of_rectangles<B<double>>()) check<B<double>>(c.name, c.f, a);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 4, 2}, {3, 2, 3}, {1, 1, 3}}) {
    CAPTURE(shape);
    const auto other = random_tensor<double>(shape, 7, 1);
    for (const auto& c : of_rectangles<B<double>>())
      if (std::string(c.name) != "expm") check<B<double>>(c.name, c.f, other);
  }
  check<B<double>>(
      "lstsq", [](B<double> x) { return all_of(B<double>(la::lstsq(x, x * x))); },
      random_tensor<double>({2, 4, 2}, 8, 1));
}

TEST_CASE("linear algebra: derivatives of functions of batches of several dimensions") {
  const auto a = random_tensor<double>({2, 1, 2, 2}, 2, 3);
  for (const auto& c : of_both<Bs<double>>()) check<Bs<double>>(c.name, c.f, a);
  for (const auto& c : of_rectangles<Bs<double>>()) check<Bs<double>>(c.name, c.f, a);
  check<Bs<double>>(
      "lstsq", [](Bs<double> x) { return all_of(Bs<double>(la::lstsq(x, x * x))); },
      random_tensor<double>({1, 2, 3, 2}, 8, 1));
}

TEST_CASE("linear algebra: derivatives in float") {
  const auto a = random_tensor<double>({4, 4}, 3, 3);
  const auto in_float = of_both<M<float>>(), more = of_rectangles<M<float>>();
  const auto in_double = of_both<M<double>>(), more_exact = of_rectangles<M<double>>();
  for (std::size_t i = 0; i < in_float.size(); ++i)
    check_float(in_float[i].name, in_float[i].f, in_double[i].f, a);
  for (std::size_t i = 0; i < more.size(); ++i) check_float(more[i].name, more[i].f, more_exact[i].f, a);
}

TEST_CASE("linear algebra: derivatives of triangular solutions, whichever triangle, transposed or not") {
  const auto a = random_tensor<double>({4, 4}, 4, 2);
  const auto batch = random_tensor<double>({2, 3, 3}, 5, 2);
  for (const bool lower : {false, true})
    for (const bool transposed : {false, true})
      for (const bool unit : {false, true}) {
        const la::Triangle which{lower, transposed, unit};
        CAPTURE(lower, transposed, unit);
        check<M<double>>(
            "matrix", [=](M<double> x) { return all_of(M<double>(la::solve_triangular(x, x * x, which))); },
            a);
        check<B<double>>(
            "batch", [=](B<double> x) { return all_of(B<double>(la::solve_triangular(x, x * x, which))); },
            batch);
      }
}

TEST_CASE(
    "linear algebra: derivatives of tall and wide factorisations, least squares, vectors on the right") {
  using X = M<double>;
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{5, 3}, {3, 5}, {1, 4}, {4, 1}}) {
    CAPTURE(shape);
    const auto a = random_tensor<double>(shape, 6, 1);
    for (const auto& c : of_rectangles<M<double>>())
      if (std::string(c.name) != "expm") check<X>(c.name, c.f, a);
  }
  const auto tall = random_tensor<double>({5, 3}, 7, 1), square = random_tensor<double>({4, 4}, 8, 3);
  check<X>("lstsq", [](X a) { return all_of(X(la::lstsq(a, a * a))); }, tall);
  check<X>(
      "lstsq of a vector",
      [](X a) { return all_of(la::lstsq(a, Rep<Tensor<double>>(transpose(a).row(0)) * 2.0 + 1.0)); }, tall);
  check<X>("solve for a vector", [](X a) { return all_of(la::solve(a, sin(a.row(1)))); }, square, true);
  check<X>(
      "cholesky_solve for a vector",
      [](X a) { return all_of(la::cholesky_solve(la::cholesky(definite(a)), sin(a.row(1)))); }, square);
  check<X>(
      "solve_triangular for a vector", [](X a) { return all_of(la::solve_triangular(a, sin(a.row(1)))); },
      square);
  check<X>(
      "lu_solve for a vector", [](X a) { return all_of(la::lu_solve(la::lu(a), sin(a.row(1)))); }, square);
}

TEST_CASE("linear algebra: the Cholesky adjoint by blocks, beside the formula's") {
  // Wider than two blocks; the tangent does not know of blocks.
  const auto a = random_tensor<double>({150, 150}, 9, 30), v = random_tensor<double>({150, 150}, 10);
  const auto f = [](M<double> x) { return all_of(M<double>(la::cholesky(definite(x)))); };
  const auto g = eager(grad(f))(a);
  const auto [y, dy] = eager(jvp(f))(a, v);
  check_close(inner(g, v), dy, 1e-10);
}

TEST_CASE("linear algebra: of symmetric matrices the lower triangle is read, and adjoints are symmetric") {
  const auto lower_of = [](M<double> a) { return all_of(M<double>(la::cholesky(a))); };
  const auto values_of = [](M<double> a) { return all_of(la::eigh(a).values); };
  auto a = random_tensor<double>({4, 4}, 11, 4);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < i; ++j) a[j * 4 + i] = a[i * 4 + j];
  auto other = a;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = i + 1; j < 4; ++j) other[i * 4 + j] = std::numeric_limits<double>::quiet_NaN();
  for (const std::function<Rep<double>(M<double>)>& f :
       {std::function<Rep<double>(M<double>)>(lower_of), std::function<Rep<double>(M<double>)>(values_of)}) {
    CHECK(eager(f)(a) == eager(f)(other));
    const auto g = eager(grad(f))(a);
    const auto v = random_tensor<double>({4, 4}, 12);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < i; ++j) CHECK(g[i * 4 + j] == g[j * 4 + i]);
    check_close(std::get<1>(eager(jvp(f))(a, v)), inner(g, v), 1e-10);
  }
}

TEST_CASE("linear algebra: derivatives where values are equal or zero") {
  using X = M<double>;
  using F = std::function<Rep<double>(X)>;
  TensorValue<double> one({3, 3}), rank_one({3, 3}, 1.0);
  for (const std::size_t i : {0U, 4U, 8U}) one[i] = 2;
  // The sum of squares of eigenvalues, of singular values: twice the matrix, whatever the vectors are.
  const F eigenvalues = [](X a) {
    const auto w = la::eigh(a).values;
    return sum(w * w);
  };
  const F square = [](X a) {
    const auto [w, v] = la::eigh(a);
    const X s = einsum<"ij,j->ij">(v, w * w);
    return sum(matmul(s, transpose(v)));  // of a a
  };
  const F singular_values = [](X a) {
    const auto s = la::svd(a).s;
    return sum(s * s);
  };
  const F spectral = [](X a) { return sum(la::spectral(a, [](Rep<double> x) { return x * x; })); };
  const auto g = eager(grad(eigenvalues))(one), h = eager(grad(square))(one),
             by_spectral = eager(grad(spectral))(one),
             s = eager(grad(singular_values))(rank_one);
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(g[i] == Approx(2 * one[i]).margin(1e-12));
    CHECK(s[i] == Approx(2 * rank_one[i]).margin(1e-12));
    CHECK(std::isnan(h[i]));  // v f(w) v^T takes f' between equal values: linalg::spectral
    CHECK(by_spectral[i] == Approx(4));
  }
  // A singular matrix has a gradient of its determinant: its cofactors.
  const TensorValue<double> singular({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  const F determinant = [](X a) { return la::det(a); };
  const std::vector<double> cofactors{-3, 6, -3, 6, -12, 6, -3, 6, -3};
  const auto d = eager(grad(determinant))(singular);
  const auto d_c = compile(grad(determinant), {.target = Target::c, .opt = 0})(singular);
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(d[i] == Approx(cofactors[i]));
    CHECK(d_c[i] == Approx(cofactors[i]));
  }
}

TEST_CASE("linear algebra: in loops and branches, by check_derivative") {
  const auto program = [](M<double> a, Rep<Array<double>> b) {
    const auto x = FOR(0, 3, b, [&](Rep<int64_t> i, Rep<Array<double>> y) {
      return IF(i < 2, [&] { return la::solve(a, y); }, [&] { return la::solve_triangular(a, y); });
    });
    return dot(x, x) + la::logdet(definite(a));
  };
  const auto a = random_tensor<double>({3, 3}, 13, 2);
  const std::vector<double> b{1, -2, 0.5};
  CHECK(check_derivative(program)(a, b) < 1e-6);
  const auto [y, g] = eager(value_and_grad(program))(a, b);
  for (const Target target : {Target::c, Target::cpp}) {
    const auto [y2, g2] =
        compile(value_and_grad(program), {.target = target, .opt = target == Target::c ? 0 : 3})(a, b);
    check_close(y2, y, 1e-12);
    for (std::size_t i = 0; i < 9; ++i) check_close(std::get<0>(g2)[i], std::get<0>(g)[i], 1e-10);
    for (std::size_t i = 0; i < 3; ++i) check_close(std::get<1>(g2)[i], std::get<1>(g)[i], 1e-10);
  }
}
