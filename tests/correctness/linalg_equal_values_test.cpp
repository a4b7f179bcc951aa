// Derivatives of <lantern/linalg.hpp> where eigenvalues or singular values are equal, nearly equal or 0:
// values and derivatives of first and second order, by every nesting of modes, eager and compiled, beside
// exact ones.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <lantern/lantern.hpp>
#include <lantern/linalg.hpp>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "hyper_dual.hpp"

using namespace lantern;
namespace la = lantern::linalg;
namespace hd = hyper_dual;

namespace {

using D = Rep<double>;
using M = Rep<Tensor<double, dyn, dyn>>;
using F = std::function<D(M)>;
using T = TensorValue<double>;
/// The same function of numbers with two directions.
using Exact = std::function<hd::Number(const hd::Matrix&)>;

T random_tensor(std::vector<int64_t> shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> number(-0.5, 0.5);
  T t(shape);
  for (double& x : t.data) x = number(engine);
  return t;
}
T times(const T& a, const T& b) {
  const auto m = static_cast<std::size_t>(a.shape[0]), k = static_cast<std::size_t>(a.shape[1]),
             n = static_cast<std::size_t>(b.shape[1]);
  T c({a.shape[0], b.shape[1]});
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
  return c;
}
T transposed(const T& a) {
  const auto m = static_cast<std::size_t>(a.shape[0]), n = static_cast<std::size_t>(a.shape[1]);
  T b({a.shape[1], a.shape[0]});
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) b[j * m + i] = a[i * n + j];
  return b;
}
T diagonal(const std::vector<double>& w, std::size_t rows = 0) {
  const std::size_t n = w.size(), m = std::max(rows, n);
  T a({static_cast<int64_t>(m), static_cast<int64_t>(n)});
  for (std::size_t i = 0; i < n; ++i) a[i * n + i] = w[i];
  return a;
}
/// A product of reflections, orthogonal to rounding.
T rotation(int64_t n, unsigned seed) {
  const auto size = static_cast<std::size_t>(n);
  T q = diagonal(std::vector<double>(size, 1));
  for (unsigned k = 0; k < 2; ++k) {
    const T v = random_tensor({n, 1}, seed + k);
    double square = 0;
    for (const double x : v.data) square += x * x;
    T h = diagonal(std::vector<double>(size, 1));
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j) h[i * size + j] -= 2 * v[i] * v[j] / square;
    q = times(q, h);
  }
  return q;
}
/// q diag(w) q^T, symmetric to the last bit.
T turned(const std::vector<double>& w, unsigned seed) {
  const T q = rotation(static_cast<int64_t>(w.size()), seed);
  T a = times(times(q, diagonal(w)), transposed(q));
  const std::size_t n = w.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) a[j * n + i] = a[i * n + j];
  return a;
}
double inner(const T& a, const T& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Which derivatives are right; the others are NaN.
struct Known {
  bool reverse = true, forward = true, forward_reverse = true, reverse_twice = true, reverse_forward = true,
       forward_twice = true;
};
constexpr Known everything{};

struct Tolerances {
  double first = 1e-9, second = 1e-8;  ///< second 0: it is not looked at
};

auto derivatives(const F& f) {
  const auto along = [f](M x, M v) { return std::get<1>(jvp(f)(x, v)); };
  const auto slope = [f](M x, M v) { return sum(grad(f)(x) * v); };
  return [=](M x, M v, M w) {
    const auto twice = [=](M y) { return along(y, v); };
    return std::tuple(value_and_grad(f)(x), jvp(f)(x, v), hvp(f)(x, v), grad<0>(slope)(x, v),
                      grad<0>(along)(x, v), jvp(twice)(x, w));
  };
}

void check_number(const std::string& name, bool known, double got, double want, double tolerance) {
  CAPTURE(name, got, want);
  if (known)
    CHECK(std::abs(got - want) <= tolerance * std::max(1.0, std::abs(want)));
  else
    CHECK(std::isnan(got));
}

/// By `run`, in the directions v and w, beside the exact numbers.
template <class Run>
void check_run(const std::string& how, const Run& run, const hd::Number& want, const T& x, const T& v,
               const T& w, const Known& known, const Tolerances& near) {
  CAPTURE(how);
  const auto [vg, jv, hv, twice, of_jvp, jj] = run(x, v, w);
  const auto number = [](long double y) { return static_cast<double>(y); };
  check_number("value", true, std::get<0>(vg), number(want.v), 1e-12);
  check_number("value of jvp", true, std::get<0>(jv), number(want.v), 1e-12);
  check_number("reverse", known.reverse, inner(std::get<1>(vg), v), number(want.a), near.first);
  check_number("forward", known.forward, std::get<1>(jv), number(want.a), near.first);
  if (near.second == 0) return;
  check_number("forward over reverse", known.forward_reverse, inner(hv, w), number(want.ab), near.second);
  check_number("reverse over reverse", known.reverse_twice, inner(twice, w), number(want.ab), near.second);
  check_number("reverse over forward", known.reverse_forward, inner(of_jvp, w), number(want.ab), near.second);
  check_number("forward over forward", known.forward_twice, std::get<1>(jj), number(want.ab), near.second);
}
/// Eagerly; by tcc as well; by Clang as well, which takes longest.
enum class By { eager, tcc, clang };

/// A program at these points, compiled once.
void check(const std::string& name, const F& f, const Exact& exact, const std::vector<T>& points,
           const Known& known = everything, const Tolerances& near = {}, By by = By::eager) {
  CAPTURE(name);
  const auto run_all = [&](const std::string& how, const auto& run) {
    for (const T& x : points) {
      CAPTURE(x.data);
      const T v = random_tensor(x.shape, 71), w = random_tensor(x.shape, 72);
      const hd::Number want = exact({static_cast<std::size_t>(x.shape[0]),
                                     static_cast<std::size_t>(x.shape[1]), x.data, v.data, w.data});
      check_run(how, run, want, x, v, w, known, near);
    }
  };
  run_all("eager", eager(derivatives(f)));
  if (by != By::eager) run_all("C", compile(derivatives(f), {.target = Target::c, .opt = 0}));
  if (by == By::clang) run_all("C++", compile(derivatives(f), {.target = Target::cpp}));
}

std::vector<hd::Real> exp_at_one() {
  std::vector<hd::Real> c{std::exp(hd::Real(1))};
  for (int k = 1; k < 30; ++k) c.push_back(c.back() / k);
  return c;
}
std::vector<hd::Real> log_at_one() {
  std::vector<hd::Real> c{0};
  for (int k = 1; k < 70; ++k) c.push_back((k % 2 == 1 ? hd::Real(1) : hd::Real(-1)) / k);
  return c;
}
std::vector<hd::Real> sqrt_at_one() {
  std::vector<hd::Real> c{1};
  for (int k = 1; k < 70; ++k) c.push_back(c.back() * (hd::Real(1.5) - k) / k);
  return c;
}

/// Symmetric matrices near 1 with equal values, nearly equal ones and others.
std::vector<T> symmetric_points() {
  return {diagonal({1, 1, 1}),          turned({1, 1, 1.25}, 1),          turned({0.8, 1.2, 1.2}, 2),
          diagonal({1, 1 + 1e-8, 1.2}), diagonal({1, 1 + 4e-16, 1.2}),    turned({1, 1 + 1e-8, 1.2}, 3),
          turned({0.8, 0.9, 1.2}, 4),   turned({0.8, 0.8 + 1e-3, 1.2}, 5)};
}

const std::vector<double> weights = random_tensor({3, 3}, 9).data;
D weighted_sum(M x) {
  D s = 0.0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) s = s + weights[static_cast<std::size_t>(3 * i + j)] * x(i, j);
  return s;
}
F of_matrix(const std::function<M(M)>& f) {
  return [f](M a) { return weighted_sum(f(a)); };
}
Exact of_series(const std::vector<hd::Real>& c) {
  return [c](const hd::Matrix& x) { return hd::inner(weights, hd::series(hd::symmetric(x), c)); };
}
template <class W>
M with_values(const M& v, const W& f) {
  return matmul(M(einsum<"ij,j->ij">(v, f)), transpose(v));
}

}  // namespace

TEST_CASE("equal values: functions of symmetric matrices by divided differences") {
  const F exponential = of_matrix([](M a) { return la::spectral(a, [](D x) { return exp(x); }); });
  const F logarithm = of_matrix([](M a) { return la::logm(a); });
  const F root = of_matrix([](M a) { return la::sqrtm(a); });
  const F root_by_differences = of_matrix([](M a) { return la::spectral(a, [](D x) { return sqrt(x); }); });
  const Tolerances near{1e-12, 1e-10};
  check("exp", exponential, of_series(exp_at_one()), symmetric_points(), everything, near, By::clang);
  check("log", logarithm, of_series(log_at_one()), symmetric_points(), everything, near, By::tcc);
  check("sqrtm", root, of_series(sqrt_at_one()), symmetric_points(), everything, near, By::clang);
  check("sqrt", root_by_differences, of_series(sqrt_at_one()), symmetric_points(), everything, near);
}

TEST_CASE("equal values: symmetric functions of eigenvalues") {
  std::mt19937 engine(5);
  std::uniform_real_distribution<double> number(-1, 1);
  for (const By by : {By::clang, By::eager, By::eager}) {
    std::array<double, 6> c{};
    for (double& x : c) x = number(engine);
    // Of the power sums, which all symmetric polynomials are made of.
    const auto of_sums = [c](const auto& p1, const auto& p2, const auto& p3) {
      return c[0] * p1 + c[1] * p2 + c[2] * p3 + c[3] * (p1 * p2) + c[4] * (p2 * p3) +
             c[5] * (p1 * (p1 * p3));
    };
    const F f = [=](M x) {
      const auto w = la::eigh(x).values;
      return of_sums(sum(w), sum(w * w), sum(w * w * w));
    };
    const Exact exact = [=](const hd::Matrix& x) {
      const hd::Matrix s = hd::symmetric(x), square = s * s;
      return of_sums(hd::trace(s), hd::trace(square), hd::trace(square * s));
    };
    check("polynomial", f, exact, symmetric_points(), everything, {1e-12, 1e-6}, by);
  }
  const F entropy = [](M x) {
    const auto w = la::eigh(x).values;
    return sum(w * log(w));
  };
  const Exact exact_entropy = [](const hd::Matrix& x) {
    const hd::Matrix s = hd::symmetric(x);
    return hd::trace(s * hd::series(s, log_at_one()));
  };
  check("entropy", entropy, exact_entropy, symmetric_points(), everything, {1e-12, 1e-6}, By::tcc);
  const F trace = [](M x) { return sum(la::eigh(x).values); };
  const Exact exact_trace = [](const hd::Matrix& x) { return hd::trace(x); };
  check("trace", trace, exact_trace, symmetric_points(), everything, {1e-12, 1e-6}, By::tcc);
}

TEST_CASE("equal values: logarithms of small values beside large ones") {
  const F of_values = [](M x) { return sum(log(la::eigh(x).values)); };
  const F of_singular = [](M x) { return sum(log(la::svd(x).s)); };
  const F beside = [](M x) { return la::logdet(x); };
  const auto all = [](const F& f, const T& x, const T& v) {
    const auto [vg, jv, hv, twice, of_jvp, jj] = eager(derivatives(f))(x, v, v);
    return std::array{inner(std::get<1>(vg), v), std::get<1>(jv), inner(hv, v),
                      inner(of_jvp, v),          std::get<1>(jj), inner(twice, v)};
  };
  // The last is the second derivative by reverse mode twice: NaN is another answer.
  const auto compare = [](const auto& got, const auto& want, double first, double second) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i, got[i], want[i]);
      if (i == 5 && std::isnan(got[i])) continue;
      CHECK(std::abs(got[i] / want[i] - 1) <= (i < 2 ? first : second));
    }
  };
  for (const std::vector<double>& w : {std::vector<double>{10, 1e-9, 1.2e-9},
                                       {100, 1e-7, 1.0001e-7},
                                       {100, 1e-6, 1.001e-6},
                                       {1, 1e-6, 1e-6 + 1e-12},
                                       {1, 1e-6, 1e-6}}) {
    CAPTURE(w);
    const T x = turned(w, 21), v = turned({0.3, -0.4, 0.2}, 22);
    const auto want = all(beside, x, v);
    compare(all(of_values, x, v), want, 1e-5, 1e-4);
    compare(all(of_singular, x, v), want, 1e-5, 1e-4);
    const auto compiled = compile(derivatives(of_values), {.target = Target::c, .opt = 0})(x, v, v);
    CHECK(inner(std::get<1>(std::get<0>(compiled)), v) == Approx(want[0]).epsilon(1e-5));
    CHECK(std::get<1>(std::get<1>(compiled)) == Approx(want[1]).epsilon(1e-5));
  }
  // A kernel matrix with noise, as of a Gaussian process: most values lie near the noise.
  constexpr std::size_t n = 24;
  for (const double noise : {1e-8, 1e-6, 1e-4}) {
    CAPTURE(noise);
    T x({n, n}), v({n, n});
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const double d = (static_cast<double>(i) - static_cast<double>(j)) / n;
        x[i * n + j] = std::exp(-d * d) + (i == j ? noise : 0);
        v[i * n + j] = d * d * std::exp(-d * d) + (i == j ? noise : 0);
      }
    const auto want = all(beside, x, v);
    compare(all(of_values, x, v), want, 1e-5, 1e-4);
  }
  // Vectors of values that lie so near are not determined.
  const T near = diagonal({1, 1e-11, 2e-11});
  const auto g = eager(grad(of_matrix([](M a) {
    const auto f = la::eigh(a);
    return with_values(f.vectors, exp(f.values));
  })))(near);
  CHECK(std::any_of(g.data.begin(), g.data.end(), [](double x) { return std::isnan(x); }));
  const auto one = eager(grad([](M a) { return la::eigh(a).values(0); }))(diagonal({1, 1e-9, 1e-9}));
  CHECK(std::any_of(one.data.begin(), one.data.end(), [](double x) { return std::isnan(x); }));
}

TEST_CASE("equal values: projectors on all vectors of equal values") {
  // On the vectors of the first values, which are below 1.1.
  const auto projector = [](M x, std::int64_t count) {
    Rep<Array<double>> chosen = fill(D(0.0), 3);
    for (std::int64_t i = 0; i < count; ++i) chosen = chosen.set(i, 1.0);
    return weighted_sum(with_values(M(la::eigh(x).vectors), chosen));
  };
  const Exact exact = [](const hd::Matrix& x) {
    const hd::Matrix one(3, 3, 1), s = hd::symmetric(x) - hd::Real(1.1L) * one;
    return hd::inner(weights, hd::Real(0.5) * (one - hd::orthogonal_factor(hd::Real(4) * s)));
  };
  Known known;
  known.forward_twice = false;
  const F on_two = [=](M x) { return projector(x, 2); };
  const std::vector<T> points{turned({1, 1, 1.25}, 1), diagonal({1, 1, 1.2}), diagonal({1, 1 + 4e-16, 1.2})};
  check("projector", on_two, exact, points, known, {1e-10, 1e-8}, By::clang);
  check("projector, gap 1e-8", [=](M x) { return projector(x, 2); }, exact, {turned({1, 1 + 1e-8, 1.2}, 3)},
        everything, {1e-7, 0});
  const Exact none = [](const hd::Matrix&) {
    return hd::Number{static_cast<hd::Real>(weights[0] + weights[4] + weights[8]), 0, 0, 0};
  };
  check("projector on all", [=](M x) { return projector(x, 3); }, none, {diagonal({1, 1, 1})}, known,
        {1e-12, 1e-8});
  // Beside a function of values: by vectors and values of one factorisation second derivatives are open, by
  // those of two they are not.
  const F mixed = [](M x) {
    const auto [w, v] = la::eigh(x);
    const Rep<Array<double>> chosen = fill(D(1.0), 3).set(2, 0.0);
    return weighted_sum(with_values(M(v), chosen)) * sum(w * w);
  };
  const F of_two = [=](M x) {
    const auto w = la::eigh(x).values;
    return projector(x, 2) * sum(w * w);
  };
  const Exact exact_mixed = [=](const hd::Matrix& x) {
    const hd::Matrix s = hd::symmetric(x);
    return exact(x) * hd::trace(s * s);
  };
  check("projector times values", mixed, exact_mixed, {turned({1, 1, 1.25}, 1)},
        {true, true, false, false, false, false}, {1e-10, 1e-8}, By::tcc);
  check("projector times other values", of_two, exact_mixed, {turned({1, 1, 1.25}, 1)}, known, {1e-10, 1e-8},
        By::tcc);
}

TEST_CASE("equal values: what the cotangents leave open is NaN") {
  const F by_vectors = of_matrix([](M a) {
    const auto f = la::eigh(a);
    return with_values(f.vectors, exp(f.values));
  });
  const F logarithm = of_matrix([](M a) {
    const auto f = la::eigh(a);
    return with_values(f.vectors, log(f.values));
  });
  // Forward mode takes the basis of the direction.
  const Known forward_alone{false, true, false, false, false, false};
  const std::vector<T> equal{diagonal({1, 1, 1}), turned({1, 1, 1.25}, 1), turned({0.8, 1.2, 1.2}, 2),
                             diagonal({1, 1 + 4e-16, 1.2}), diagonal({0.8, 1.2, 1.2})};
  check("exp", by_vectors, of_series(exp_at_one()), equal, forward_alone, {1e-10, 1e-8}, By::clang);
  check("log", logarithm, of_series(log_at_one()), equal, forward_alone, {1e-10, 1e-8});
  check("exp, other values", by_vectors, of_series(exp_at_one()), {turned({0.8, 0.9, 1.2}, 4)}, everything,
        {1e-10, 1e-8}, By::tcc);
  // A gap of 1e-8 is one: first derivatives are right to eps / gap, second ones to eps / gap^2.
  check("exp, near values", by_vectors, of_series(exp_at_one()), {turned({1, 1 + 1e-8, 1.2}, 3)}, everything,
        {1e-7, 0});
  for (const double gap : {1e-3, 1e-4, 1e-5})
    check("exp, gaps", by_vectors, of_series(exp_at_one()), {turned({1, 1 + gap, 1.2}, 3)}, everything,
          {1e-14 / gap, 1e-14 / (gap * gap)});
  const T one = diagonal({1, 1, 1});
  const auto nan_gradient = [&](const F& f) {
    for (const T& a : {one, turned({1, 1, 1.25}, 1)})
      for (const auto& g : {eager(grad(f))(a), compile(grad(f), {.target = Target::c, .opt = 0})(a)})
        CHECK(std::any_of(g.data.begin(), g.data.end(), [](double x) { return std::isnan(x); }));
  };
  nan_gradient([](M a) { return la::eigh(a).vectors(0, 0); });
  nan_gradient([](M a) { return la::eigh(a).values(0); });
  nan_gradient([](M a) { return la::svd(a).u(0, 1); });
  nan_gradient([](M a) { return la::svd(a).s(1); });
  nan_gradient([](M a) {
    const auto f = la::eigh(a);
    return with_values(f.vectors, exp(f.values))(0, 1);
  });
}

TEST_CASE("equal values: polar factors, and u vt of svd") {
  const auto factor = [](const hd::Matrix& x) { return hd::orthogonal_factor(x); };
  for (const auto& [rows, seed] : {std::pair<int64_t, unsigned>{3, 1}, {5, 2}, {3, 3}}) {
    const T w = random_tensor({rows, 3}, 40 + seed);
    const auto sum_of = [w](M x) {
      D s = 0.0;
      for (std::size_t i = 0; i < w.data.size(); ++i)
        s = s + w[i] * x(static_cast<int>(i) / 3, static_cast<int>(i) % 3);
      return s;
    };
    const F polar = [=](M x) { return sum_of(la::polar(x).u); };
    const F symmetric_factor = [=](M x) {
      const M p = la::polar(x).p;
      return weighted_sum(p);
    };
    const F by_svd = [=](M x) {
      const auto f = la::svd(x);
      return sum_of(matmul(f.u, f.vt));
    };
    const Exact exact = [=](const hd::Matrix& x) { return hd::inner(w.data, factor(x)); };
    const Exact exact_p = [=](const hd::Matrix& x) { return hd::inner(weights, hd::t(factor(x)) * x); };
    const auto of_values = [&, rows = rows, seed = seed](const std::vector<double>& s) {
      return times(times(rotation(rows, seed), diagonal(s, static_cast<std::size_t>(rows))),
                   transposed(rotation(3, seed + 7)));
    };
    const std::vector<T> equal{of_values({1, 1, 1}), of_values({1, 1, 0.8}), of_values({1, 1 + 4e-16, 0.7})},
        near{of_values({1, 1 + 1e-8, 0.8})}, other{of_values({1.2, 0.9, 0.7})};
    for (const auto& points : {equal, near, other}) {
      check("polar u", polar, exact, points, everything, {1e-11, 1e-10}, rows == 5 ? By::tcc : By::eager);
      check("polar p", symmetric_factor, exact_p, points, everything, {1e-11, 1e-10});
    }
    Known known;
    known.forward_twice = false;
    check("u vt", by_svd, exact, equal, known, {1e-6, 1e-9}, rows == 5 ? By::clang : By::eager);
    check("u vt, near values", by_svd, exact, near, everything, {1e-6, 0});
    check("u vt, other values", by_svd, exact, other, everything, {1e-9, 1e-9});
  }
  const auto wide = random_tensor({2, 3}, 1);
  CHECK_THROWS_WITH(eager([](M a) { return la::polar(a).p; })(wide),
                    Catch::Contains("polar: expected no more columns than rows"));
  const T dependent({1, 2, 2, 4}, {2, 2});
  CHECK(std::isnan(eager([](M a) { return la::polar(a).u; })(dependent)[0]));
}

TEST_CASE("equal values: symmetric functions of singular values") {
  const F nuclear = [](M x) { return sum(la::svd(x).s); };
  const Exact exact_nuclear = [](const hd::Matrix& x) {
    return hd::trace(hd::t(hd::orthogonal_factor(x)) * x);
  };
  const F fourth = [](M x) {
    const auto s = la::svd(x).s;
    return sum(s * s * s * s) + sum(s * s) * sum(s * s);
  };
  const Exact exact_fourth = [](const hd::Matrix& x) {
    const hd::Matrix square = hd::t(x) * x;
    return hd::trace(square * square) + hd::trace(square) * hd::trace(square);
  };
  for (const auto& [rows, seed] : {std::pair<int64_t, unsigned>{3, 1}, {5, 2}}) {
    const T q = rotation(rows, seed), r = rotation(3, seed + 7);
    std::vector<T> points;
    for (const std::vector<double>& s : {std::vector<double>{1, 1, 1},
                                         {1, 1, 0.8},
                                         {1, 1 + 1e-8, 0.8},
                                         {1, 1 + 4e-16, 0.7},
                                         {1.2, 0.9, 0.7}})
      points.push_back(times(times(q, diagonal(s, static_cast<std::size_t>(rows))), transposed(r)));
    check("nuclear norm", nuclear, exact_nuclear, points, everything, {1e-11, 1e-6});
    check("fourth powers", fourth, exact_fourth, points, everything, {1e-11, 1e-6},
          rows == 5 ? By::clang : By::eager);
    // A function whose slope by a value of 0 is 0.
    const T singular = times(times(q, diagonal({1, 0.7, 0}, static_cast<std::size_t>(rows))), transposed(r));
    Known first_order{true, true, false, false, false, false};
    const auto g = eager(grad(fourth))(singular);
    const T v = random_tensor(singular.shape, 3);
    const hd::Number want = exact_fourth({static_cast<std::size_t>(rows), 3, singular.data, v.data, v.data});
    check_number("fourth powers of a singular matrix", first_order.reverse, inner(g, v),
                 static_cast<double>(want.a), 1e-11);
    // One value of 0 of a square matrix has a sign; of a rectangular one it has a kink.
    const auto kink = eager(grad(nuclear))(singular);
    CHECK(std::isnan(kink[0]) == (rows != 3));
  }
}

TEST_CASE("equal values: the pseudoinverse and least squares of dependent columns and of wide matrices") {
  // a = b c of rank 2 depends on b and c, in whose directions the rank stays.
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{4, 3}, {3, 4}, {3, 3}, {5, 2}, {2, 5}}) {
    CAPTURE(m, n);
    const T c = random_tensor({2, n}, 11), right = random_tensor({m, 1}, 12), w = random_tensor({n, m}, 13);
    const auto constant = [](const T& t) {
      M x = fill(D(0.0), t.shape[0], t.shape[1]);
      for (std::size_t i = 0; i < t.data.size(); ++i)
        x = x.set(static_cast<std::int64_t>(i) / t.shape[1], static_cast<std::int64_t>(i) % t.shape[1], t[i]);
      return x;
    };
    const F by_pinv = [=](M b) { return sum(la::pinv(matmul(b, constant(c))) * constant(w)); };
    const F by_lstsq = [=](M b) {
      const M x = la::lstsq(matmul(b, constant(c)), constant(right));
      return sum(x * x);
    };
    const auto of_c = [=] {
      const std::vector<double> zero(c.data.size());
      return hd::Matrix(2, static_cast<std::size_t>(n), c.data, zero, zero);
    };
    const auto inverse = [=](const hd::Matrix& b) { return hd::pseudoinverse(b * of_c(), 24); };
    const Exact exact = [=](const hd::Matrix& b) { return hd::inner(w.data, inverse(b)); };
    const Exact exact_least = [=](const hd::Matrix& b) {
      const std::vector<double> zero(right.data.size());
      const hd::Matrix x = inverse(b) * hd::Matrix(static_cast<std::size_t>(m), 1, right.data, zero, zero);
      return hd::trace(hd::t(x) * x);
    };
    const T b = random_tensor({m, 2}, 14);
    check("pinv", by_pinv, exact, {b}, everything, {1e-9, 1e-7}, n == 3 ? By::tcc : By::eager);
    check("lstsq", by_lstsq, exact_least, {b}, everything, {1e-9, 1e-7}, n == 4 ? By::clang : By::eager);
  }
  // A column of zeros; the numbers are those of other libraries.
  const T a({1, 0, 2, 0, 3, 0}, {3, 2}), b({1, 2, 4}, {3, 1});
  const auto f = [](M x, M y) { return sum(la::lstsq(x, y)); };
  const auto [y, g] = eager(value_and_grad(f))(a, b);
  CHECK(y == Approx(1.2142857142857142));
  const std::vector<double> of_a{-0.102041, 0.0867347, -0.204082, 0.173469, -0.234694, 0.260204},
      of_b{0.0714286, 0.142857, 0.214286};
  for (std::size_t i = 0; i < 6; ++i) CHECK(std::get<0>(g)[i] == Approx(of_a[i]).epsilon(1e-5));
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::get<1>(g)[i] == Approx(of_b[i]).epsilon(1e-5));
}

TEST_CASE("equal values: second derivatives of determinants of any rank") {
  const F det = [](M x) { return la::det(x); };
  const Exact exact = [](const hd::Matrix& x) { return hd::determinant(x); };
  std::vector<T> points;
  for (const std::vector<double>& s :
       {std::vector<double>{1, 2, 0}, {2, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1e-9, 2}, {3, -2, 1}}) {
    points.push_back(diagonal(s));
    points.push_back(times(times(rotation(3, 1), diagonal(s)), rotation(3, 5)));
  }
  for (const std::vector<double>& s : {std::vector<double>{1, 2, 3, 0}, {1, 2, 0, 0}, {1, 0, 0, 0}})
    points.push_back(times(times(rotation(4, 1), diagonal(s)), rotation(4, 5)));
  points.push_back(T({1, 2, 2, 4}, {2, 2}));
  points.push_back(T({0}, {1, 1}));
  check("det", det, exact, points, everything, {1e-12, 1e-11}, By::clang);
}

TEST_CASE("equal values: qr of wide matrices") {
  const T a = random_tensor({2, 4}, 3);
  const auto [q, r] = [&] {
    return std::pair(eager([](M x) { return la::qr(x).q; })(a), eager([](M x) { return la::qr(x).r; })(a));
  }();
  REQUIRE(q.shape == std::vector<int64_t>{2, 2});
  REQUIRE(r.shape == std::vector<int64_t>{2, 4});
  const T back = times(q, r), one = times(transposed(q), q);
  for (std::size_t i = 0; i < 8; ++i) CHECK(back[i] == Approx(a[i]).margin(1e-14));
  for (std::size_t i = 0; i < 4; ++i) CHECK(one[i] == Approx(i % 3 == 0 ? 1 : 0).margin(1e-14));
  CHECK(r[4] == 0);
  CHECK(r[0] >= 0);
  CHECK(r[5] >= 0);
  // r^T r = a^T a and q r = a, whatever the signs.
  const auto square = [](M x) {
    const M r_ = la::qr(x).r;
    return sum(matmul(transpose(r_), r_) * matmul(transpose(r_), r_));
  };
  const Exact exact = [](const hd::Matrix& x) {
    const hd::Matrix s = hd::t(x) * x;
    return hd::trace(s * s);
  };
  check("r^T r", square, exact, {a}, everything, {1e-10, 1e-8}, By::tcc);
}

TEST_CASE("equal values: angles and shears, by one number") {
  const auto sheared = [](D a) { return fill(D(1.0), 2, 2).set(0, 1, a).set(1, 0, a); };
  const auto turn = [](D angle) {
    return fill(cos(angle), 2, 2).set(0, 1, -sin(angle)).set(1, 0, sin(angle));
  };
  using S = std::function<D(D)>;
  const S by_polar = [=](D x) {
    const auto f = la::svd(M(turn(x)));
    return matmul(f.u, f.vt)(1, 0);
  };
  const S by_eigh = [=](D a) {
    const auto f = la::eigh(M(sheared(a)));
    return with_values(f.vectors, f.values)(0, 1);
  };
  const S by_svd = [=](D a) {
    const auto f = la::svd(M(sheared(a)));
    return matmul(M(einsum<"ij,j->ij">(f.u, f.s)), f.vt)(0, 1);
  };
  const S by_spectral = [=](D a) { return la::spectral(M(sheared(a)), [](D x) { return x; })(0, 1); };
  for (const Target target : {Target::c, Target::cpp}) {
    const CompileOptions options{.target = target};
    for (const double x : {0.5, 0.1, 0.0}) {
      CHECK(compile(grad(by_polar), options)(x) == Approx(std::cos(x)));
      CHECK(eager(grad(by_polar))(x) == Approx(std::cos(x)));
    }
    CHECK(std::isnan(compile(grad(by_eigh), options)(0.0)));
    CHECK(std::isnan(compile(grad(by_svd), options)(0.0)));
    CHECK(compile(grad(by_spectral), options)(0.0) == Approx(1));
    CHECK(std::get<1>(compile(jvp(by_eigh), options)(0.0, 1.0)) == Approx(1));
    CHECK(std::get<1>(compile(jvp(by_svd), options)(0.0, 1.0)) == Approx(1));
  }
}

TEST_CASE("equal values: in a batch they are of their own matrix, and in float as in double") {
  using B = Rep<Tensor<double, dyn, dyn, dyn>>;
  const std::function<D(B)> f = [](B a) {
    const auto e = la::eigh(a);
    return sum(einsum<"bij,bj,bkj->bik">(e.vectors, exp(e.values), e.vectors));
  };
  const T one = turned({1, 1, 1.25}, 1), other = turned({0.8, 0.9, 1.2}, 4);
  T both({2, 3, 3});
  std::copy(one.data.begin(), one.data.end(), both.data.begin());
  std::copy(other.data.begin(), other.data.end(), both.data.begin() + 9);
  const std::function<D(B)> spectral = [](B a) { return sum(la::spectral(a, [](D x) { return exp(x); })); };
  const auto g = eager(grad(f))(both), right = eager(grad(spectral))(both),
             compiled = compile(grad(spectral), {.target = Target::c, .opt = 0})(both);
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(std::isnan(g[i]));
    CHECK(g[i + 9] == Approx(right[i + 9]));
  }
  for (std::size_t i = 0; i < 18; ++i) CHECK(compiled[i] == Approx(right[i]));
  using S = Rep<Tensor<float, dyn, dyn>>;
  const TensorValue<float> narrow(std::vector<float>(one.data.begin(), one.data.end()), {3, 3});
  const auto in_float =
      eager(grad([](S a) { return sum(la::logm(a)) + sum(la::polar(a).u) + sum(la::sqrtm(a)); }))(narrow);
  const auto in_double =
      eager(grad([](M a) { return sum(la::logm(a)) + sum(la::polar(a).u) + sum(la::sqrtm(a)); }))(one);
  for (std::size_t i = 0; i < 9; ++i)
    CHECK(static_cast<double>(in_float[i]) == Approx(in_double[i]).margin(2e-4));
}
