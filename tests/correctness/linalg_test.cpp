// Values of <lantern/linalg.hpp>: the identities that define them, sizes from 0, batches, float; operands
// without a result; errors. Derivatives: linalg_derivatives_test.cpp.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <lantern/lantern.hpp>
#include <lantern/linalg.hpp>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace lantern;
namespace la = lantern::linalg;
using Catch::Matchers::Contains;

namespace {

template <class T>
using M = Rep<Tensor<T, dyn, dyn>>;
using Batch = Rep<Tensor<double, dyn, dyn, dyn>>;
using Batches = Rep<Tensor<double, dyn, dyn, dyn, dyn>>;
const double nan_value = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

/// Numbers up to 1/2, with more on the diagonal.
template <class T>
TensorValue<T> random_matrix(int64_t m, int64_t n, unsigned seed, double diagonal) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> number(-0.5, 0.5);
  TensorValue<T> a({m, n});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      a[static_cast<std::size_t>(i * n + j)] = static_cast<T>(number(engine) + (i == j ? diagonal : 0));
  return a;
}

template <class T>
M<T> eye(const Rep<int64_t>& n) {
  const M<T> none = fill(Rep<T>(T(0)), n, n);
  return FOR(0, n, none, [](Rep<int64_t> i, M<T> e) { return e.set(i, i, T(1)); });
}
/// How far two tensors are apart.
auto distance(const auto& a, const auto& b) { return sum(abs(a - b)); }
/// What stands below the diagonal.
template <class T>
Rep<T> below(const M<T>& a) {
  return FOR(0, a.dim(0), Rep<T>(T(0)), [&](Rep<int64_t> i, Rep<T> s) {
    return FOR(0, min(i, a.dim(1)), s, [&](Rep<int64_t> j, Rep<T> r) { return r + abs(a(i, j)); });
  });
}
/// The determinant, by elimination without exchanges, which a large diagonal allows.
template <class T>
Rep<T> eliminated(const M<T>& a) {
  const Rep<int64_t> n = a.dim(0);
  const auto [rest, product] = FOR(0, n, std::tuple(a, Rep<T>(T(1))), [&](Rep<int64_t> k, M<T> u, Rep<T> d) {
    const M<T> next = FOR(k + 1, n, u, [&](Rep<int64_t> i, M<T> v) {
      return FOR(k + 1, n, v,
                 [&](Rep<int64_t> j, M<T> w) { return w.set(i, j, w(i, j) - u(i, k) * u(k, j) / u(k, k)); });
    });
    return std::tuple(next, d * u(k, k));
  });
  return product;
}
/// The exponential by its series.
template <class T>
M<T> series(const M<T>& a) {
  const auto [sum, term] =
      FOR(1, 60, std::tuple(eye<T>(a.dim(0)), eye<T>(a.dim(0))), [&](Rep<int64_t> k, M<T> s, M<T> p) {
        const M<T> next = matmul(p, a) / cast<T>(k);
        return std::tuple(s + next, next);
      });
  return sum;
}

/// What is zero for every matrix.
template <class T>
struct Identity {
  const char* name;
  std::function<Rep<T>(M<T>)> f;
};
template <class T>
std::vector<Identity<T>> of_square_matrices() {
  using X = M<T>;
  return {
      {"product", [](X a) { return distance(X(la::product(a, a)), X(matmul(a, a))); }},
      {"cholesky: l l^T = a",
       [](X a) {
         const X s = a + transpose(a), l = la::cholesky(s);
         return distance(X(matmul(l, transpose(l))), s) + below(X(transpose(l)));
       }},
      {"cholesky_solve",
       [](X a) {
         const X s = a + transpose(a);
         return distance(X(matmul(s, la::cholesky_solve(la::cholesky(s), a))), a);
       }},
      {"solve", [](X a) { return distance(X(matmul(a, la::solve(a, a + T(1)))), X(a + T(1))); }},
      {"solve a vector",
       [](X a) {
         const Rep<Array<T>> b = fill(Rep<T>(T(2)), a.dim(0));
         const Rep<Array<T>> x = la::solve(a, b);
         return distance(as_array(Rep<Tensor<T>>(matmul(a, x))), b);
       }},
      {"inverse", [](X a) { return distance(X(matmul(a, la::inverse(a))), eye<T>(a.dim(0))); }},
      {"det", [](X a) { return abs(la::det(a) / eliminated(a) - T(1)); }},
      {"slogdet",
       [](X a) {
         const auto d = la::slogdet(a), minus = la::slogdet(X(a.set(0, 0, -2.0 * a(0, 0))));
         return abs(d.sign * exp(d.log) / la::det(a) - T(1)) + abs(minus.sign + T(1));
       }},
      {"logdet", [](X a) { return abs(la::logdet(a) - log(la::det(a))); }},
      {"lu: l u = a[p, :]",
       [](X a) {
         const X changed = a - T(1);  // which needs exchanges
         const auto [f, p] = la::lu(changed);
         const X factors = f;
         const Rep<int64_t> n = a.dim(0);
         return FOR(0, n * n, Rep<T>(T(0)), [&](Rep<int64_t> k, Rep<T> s) {
           const Rep<int64_t> i = k / n, j = k % n;
           const Rep<T> product = FOR(0, min(i, j + 1), Rep<T>(T(0)), [&](Rep<int64_t> m, Rep<T> r) {
             return r + factors(i, m) * factors(m, j);
           });
           return s + abs(product + select(i <= j, factors(i, j), T(0)) - changed(p[i], j));
         });
       }},
      {"lu_solve",
       [](X a) {
         const X b = a - T(1);
         return distance(X(matmul(b, la::lu_solve(la::lu(b), a))), a);
       }},
      {"eigh: a v = v diag(w)",
       [](X a) {
         const X s = a + transpose(a);
         const auto [w, v] = la::eigh(s);
         const auto down = FOR(1, a.dim(0), Rep<T>(T(0)), [&](Rep<int64_t> i, Rep<T> d) {
           return d + max(Rep<T>(w(i - 1) - w(i)), T(0));
         });
         return distance(X(matmul(s, v)), X(einsum<"ij,j->ij">(v, w))) +
                distance(X(matmul(transpose(v), v)), eye<T>(a.dim(0))) + down;
       }},
      {"expm of small matrices", [](X a) { return distance(X(la::expm(0.001 * a)), series(X(0.001 * a))); }},
      {"expm",
       [](X a) {
         return distance(X(la::expm(0.1 * a)), series(X(0.1 * a))) +
                distance(X(la::expm(0.03 * a)), series(X(0.03 * a)));
       }},
      {"expm of large ones",
       [](X a) {
         const X e = la::expm(a);
         return distance(X(matmul(e, la::expm(-1.0 * a))), eye<T>(a.dim(0))) +
                distance(X(la::expm(0.3 * a)), series(X(0.3 * a)));
       }},
  };
}
template <class T>
std::vector<Identity<T>> of_all_matrices() {
  using X = M<T>;
  return {
      {"qr",
       [](X a) {
         const auto [q, r] = la::qr(a);
         const Rep<int64_t> k = min(a.dim(0), a.dim(1));
         const auto negative =
             FOR(0, k, Rep<T>(T(0)), [&](Rep<int64_t> i, Rep<T> s) { return s + max(-1.0 * r(i, i), T(0)); });
         return distance(X(matmul(q, r)), a) + distance(X(matmul(transpose(q), q)), eye<T>(k)) + below(X(r)) +
                negative;
       }},
      {"svd",
       [](X a) {
         const auto [u, s, vt] = la::svd(a);
         const Rep<int64_t> k = min(a.dim(0), a.dim(1));
         const auto up = FOR(1, k, Rep<T>(T(0)), [&](Rep<int64_t> i, Rep<T> d) {
           return d + max(s(i) - s(i - 1), T(0)) + max(-1.0 * s(i), T(0));
         });
         return distance(X(matmul(X(einsum<"ij,j->ij">(u, s)), vt)), a) +
                distance(X(matmul(transpose(u), u)), eye<T>(k)) +
                distance(X(matmul(vt, transpose(vt))), eye<T>(k)) + up;
       }},
  };
}

template <class T>
void check_zero(const std::vector<Identity<T>>& all, const std::vector<TensorValue<T>>& matrices) {
  for (const auto& [name, f] : all) {
    const auto interpreted = eager(f);
    const auto compiled = compile(f, {.target = Target::c, .opt = 0});
    for (const TensorValue<T>& a : matrices) {
      CAPTURE(name, a.shape);
      const auto elements = static_cast<T>(a.data.size());
      const T bound = std::numeric_limits<T>::epsilon() * 500 * (elements + 1);
      CHECK(interpreted(a) <= bound);
      CHECK(compiled(a) <= bound);
    }
  }
}

template <class F, class... A>
std::string message(const F& f, const A&... arguments) {
  try {
    f(arguments...);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
bool all_nan(const std::vector<double>& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return std::isnan(x); });
}

}  // namespace

TEMPLATE_TEST_CASE("linear algebra: what defines the functions of square matrices", "", double, float) {
  std::vector<TensorValue<TestType>> matrices;
  for (const int64_t n : {1, 2, 5, 17}) matrices.push_back(random_matrix<TestType>(n, n, 1, 4));
  check_zero(of_square_matrices<TestType>(), matrices);
}

TEMPLATE_TEST_CASE("linear algebra: what defines QR and singular values", "", double, float) {
  std::vector<TensorValue<TestType>> matrices;
  for (const auto& [m, n] : {std::pair{1, 1}, {5, 5}, {5, 2}, {2, 5}, {1, 4}, {4, 1}, {0, 3}, {3, 0}})
    matrices.push_back(random_matrix<TestType>(m, n, 2, 1));
  check_zero(of_all_matrices<TestType>(), matrices);
}

TEST_CASE("linear algebra: programs through Clang") {
  const auto program = [](M<double> a) {
    const M<double> s = a + transpose(a);
    const auto [q, r] = la::qr(a);
    const auto [w, v] = la::eigh(s);
    return std::tuple(la::cholesky(s), la::solve(a, s), q, w, la::det(a), la::expm(a), la::svd(a).s);
  };
  const auto a = random_matrix<double>(5, 5, 3, 4);
  const auto all = eager(program)(a), compiled = compile(program, {.target = Target::cpp})(a);
  const auto check = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
    const auto& one = std::get<i>(all);
    const auto& other = std::get<i>(compiled);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, double>) {
      CHECK(one == Approx(other));
    } else {
      CHECK(one.shape == other.shape);
      for (std::size_t k = 0; k < one.data.size(); ++k) CHECK(one[k] == Approx(other[k]));
    }
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (check(std::integral_constant<std::size_t, i>()), ...);
  }(std::make_index_sequence<7>());
}

TEST_CASE("linear algebra: empty matrices") {
  const TensorValue<double> none({0, 0});
  const auto f = [](M<double> a) {
    const auto d = la::slogdet(a);
    return std::tuple(la::cholesky(a), la::solve(a, la::inverse(a)), la::det(a), d.sign, d.log,
                      la::eigh(la::expm(a)).vectors);
  };
  for (const auto& [l, x, det, sign, log, v] :
       {eager(f)(none), compile(f, {.target = Target::c, .opt = 0})(none)}) {
    CHECK(l.shape == none.shape);
    CHECK(x.shape == none.shape);
    CHECK(v.shape == none.shape);
    CHECK(det == 1);
    CHECK(sign == 1);
    CHECK(log == 0);
  }
  const auto g = [](M<double> a) { return la::det(a) + sum(M<double>(la::solve(a, a))); };
  CHECK(eager(grad(g))(none).data.empty());
}

TEST_CASE("linear algebra: triangular solutions read one triangle") {
  const std::vector<double> b{1, -2, 3, 0.5, 4, -1};
  const auto t = random_matrix<double>(3, 3, 4, 2);
  for (const bool lower : {false, true})
    for (const bool transposed : {false, true})
      for (const bool unit : {false, true}) {
        CAPTURE(lower, transposed, unit);
        auto hidden = t;  // what is not read
        auto full = t;
        for (std::size_t i = 0; i < 3; ++i)
          for (std::size_t j = 0; j < 3; ++j) {
            const bool read = i == j ? !unit : lower == (j < i);
            if (read) continue;
            hidden[i * 3 + j] = nan_value;
            full[i * 3 + j] = i == j ? 1 : 0;
          }
        const auto program = [=](M<double> m, M<double> r) {
          return la::solve_triangular(m, r, {lower, transposed, unit});
        };
        const TensorValue<double> right(b, {3, 2});
        const auto x = eager(program)(hidden, right);
        for (std::size_t i = 0; i < 3; ++i)
          for (std::size_t k = 0; k < 2; ++k) {
            double sum = 0;
            for (std::size_t j = 0; j < 3; ++j)
              sum += full[transposed ? j * 3 + i : i * 3 + j] * x[j * 2 + k];
            CHECK(sum == Approx(b[i * 2 + k]));
          }
        CHECK(compile(program, {.target = Target::c, .opt = 0})(hidden, right).data == x.data);
      }
}

TEST_CASE("linear algebra: each matrix of a batch") {
  const auto one = random_matrix<double>(4, 4, 5, 4), two = random_matrix<double>(4, 4, 6, 3);
  TensorValue<double> both({2, 4, 4});
  std::copy(one.data.begin(), one.data.end(), both.data.begin());
  std::copy(two.data.begin(), two.data.end(), both.data.begin() + 16);
  const auto results = [](const auto& a, const auto& s) {
    const auto f = la::lu(a);
    const auto e = la::eigh(s);
    const auto d = la::slogdet(a);
    const auto q = la::qr(a);
    const auto v = la::svd(a);
    return std::tuple(la::product(a, s), la::cholesky(s), la::cholesky_solve(la::cholesky(s), a),
                      la::solve_triangular(a, s), la::solve(a, s), la::inverse(a), la::det(a), d.sign, d.log,
                      la::logdet(s), f.factors, la::lu_solve(f, s), e.values, e.vectors, q.q, q.r, v.u, v.s,
                      v.vt, la::expm(0.1 * a), la::lstsq(a, s));
  };
  const auto single = eager([=](M<double> a) { return results(a, M<double>(a + transpose(a))); });
  const auto batch = [=](Batch a) { return results(a, Batch(a + permute<0, 2, 1>(a))); };
  const auto first = single(one), second = single(two);
  const auto check = [&](const auto& all) {
    const auto part = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
      CAPTURE(i);
      std::vector<double> expected;
      for (const auto* which : {&std::get<i>(first), &std::get<i>(second)})
        if constexpr (std::is_same_v<decltype(which), const double*>)
          expected.push_back(*which);
        else
          expected.insert(expected.end(), which->data.begin(), which->data.end());
      CHECK(std::get<i>(all).shape[0] == 2);
      REQUIRE(std::get<i>(all).data.size() == expected.size());
      for (std::size_t k = 0; k < expected.size(); ++k) CHECK(std::get<i>(all)[k] == Approx(expected[k]));
    };
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (part(std::integral_constant<std::size_t, i>()), ...);
    }(std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(all)>>>());
  };
  check(eager(batch)(both));
  check(compile(batch, {.target = Target::c, .opt = 0})(both));

  // Counted by several dimensions.
  const auto batches = [=](Batches a) { return results(a, Batches(a + permute<0, 1, 3, 2>(a))); };
  both.shape = {2, 1, 4, 4};
  check(eager(batches)(both));
  const auto compiled = compile(batches, {.target = Target::c, .opt = 0});
  check(compiled(both));
  const auto shapes = [](const auto& all) {
    return std::apply([](const auto&... t) { return std::vector<std::vector<int64_t>>{t.shape...}; }, all);
  };
  const auto count = [&](std::vector<int64_t> leading) {
    std::vector<std::vector<int64_t>> all = shapes(eager(batch)(TensorValue<double>({2, 4, 4})));
    for (std::vector<int64_t>& s : all) {
      s.erase(s.begin());
      s.insert(s.begin(), leading.begin(), leading.end());
    }
    return all;
  };
  CHECK(shapes(compiled(both)) == count({2, 1}));
  for (const std::vector<int64_t>& none : {std::vector<int64_t>{0, 3}, {3, 0}}) {
    const TensorValue<double> empty({none[0], none[1], 4, 4});
    CHECK(shapes(compiled(empty)) == count(none));
    CHECK(shapes(eager(batches)(empty)) == count(none));
  }
  // Vectors on the right, and five dimensions before the matrices.
  const auto vectors = [](Rep<Tensor<double>> a) {
    return Rep<Tensor<double>>(la::solve(a, Rep<Tensor<double>>(sum<-1>(a))));
  };
  both.shape = {1, 1, 2, 1, 1, 4, 4};
  const auto ones = eager(vectors)(both);
  CHECK(ones.shape == std::vector<int64_t>{1, 1, 2, 1, 1, 4});
  for (const double v : ones.data) CHECK(v == Approx(1));
}

TEST_CASE("linear algebra: where there is no result, NaN, in that matrix alone") {
  const TensorValue<double> good({4, 2, 2, 3}, {2, 2}), bad({1, 2, 2, 4}, {2, 2}), zero({2, 2});
  using Program = std::function<Rep<Tensor<double>>(M<double>)>;
  const std::vector<std::pair<const char*, Program>> all{
      {"cholesky", [](M<double> a) { return la::cholesky(a - 1.0); }},
      {"solve", [](M<double> a) { return la::solve(a, a); }},
      {"lu_solve", [](M<double> a) { return la::lu_solve(la::lu(a), a); }},
      {"inverse", [](M<double> a) { return la::inverse(a); }},
  };
  for (const auto& [name, f] : all) {
    CAPTURE(name);
    CHECK(all_nan(eager(f)(bad).data));
    CHECK(all_nan(compile(f, {.target = Target::c, .opt = 0})(bad).data));
    CHECK_FALSE(all_nan(eager(f)(good).data));
    CHECK_THROWS_WITH(eager(f, Check::nan)(bad),
                      Contains("linalg_test.cpp:") && Contains("expected finite values"));
    CHECK_THROWS_WITH(compile(f, {.target = Target::c, .opt = 0, .check = Check::nan})(bad),
                      Contains("expected finite values"));
  }
  TensorValue<double> both({2, 2, 2});
  std::copy(bad.data.begin(), bad.data.end(), both.data.begin());
  std::copy(good.data.begin(), good.data.end(), both.data.begin() + 4);
  const auto inverses = eager([](Batch a) { return la::inverse(a); })(both);
  CHECK(all_nan({inverses.data.begin(), inverses.data.begin() + 4}));
  CHECK(inverses[4] == Approx(3.0 / 8));

  const auto numbers = eager([](M<double> a) {
    const auto d = la::slogdet(a);
    return std::tuple(la::det(a), d.sign, d.log, la::logdet(a), la::logdet(a * (-1.0)));
  });
  const auto [det, sign, log, of_it, of_minus] = numbers(zero);
  CHECK((det == 0 && sign == 0 && log == -infinity));
  CHECK((std::isnan(of_it) && std::isnan(of_minus)));

  for (const double hole : {nan_value, infinity}) {
    auto a = good;
    a[2] = hole;
    const auto f = eager([](M<double> m) {
      return std::tuple(la::eigh(m).values, la::svd(m).s, la::expm(m), la::cholesky(m), la::solve(m, m));
    });
    const auto [w, s, e, l, x] = f(a);
    CHECK(all_nan(w.data));
    CHECK(all_nan(s.data));
    CHECK(all_nan(e.data));
    CHECK(std::isnan(l[3]));
    CHECK(std::any_of(x.data.begin(), x.data.end(), [](double v) { return std::isnan(v); }));
  }
  const auto least = eager([](M<double> a) { return la::lstsq(a, a); });
  // Every x is a least-squares solution; 0 is the smallest.
  for (const double x : least(zero).data) CHECK(x == 0);
}

TEST_CASE("linear algebra: least squares") {
  // A line through (0, 1), (1, 3), (2, 4), (3, 4).
  const TensorValue<double> a({1, 0, 1, 1, 1, 2, 1, 3}, {4, 2});
  const std::vector<double> b{1, 3, 4, 4};
  const auto f = [](M<double> m, Rep<Array<double>> r) { return la::lstsq(m, r); };
  for (const auto& x : {eager(f)(a, b), compile(f, {.target = Target::c, .opt = 0})(a, b)}) {
    CHECK(x[0] == Approx(1.5));
    CHECK(x[1] == Approx(1.0));
  }
}

TEST_CASE("linear algebra: operands that do not fit") {
  const TensorValue<double> wide({2, 3}), two({2, 2}), three({3, 3});
  using Two = std::function<Rep<Tensor<double>>(M<double>, M<double>)>;
  const std::vector<std::tuple<Two, TensorValue<double>, TensorValue<double>, const char*>> at_run{
      {[](M<double> a, M<double>) { return la::cholesky(a); }, wide, two,
       "cholesky: expected a square matrix"},
      {[](M<double> a, M<double>) { return la::inverse(a); }, wide, two, "inverse: expected a square matrix"},
      {[](M<double> a, M<double>) { return la::expm(a); }, wide, two, "expm: expected a square matrix"},
      {[](M<double> a, M<double>) { return la::eigh(a).vectors; }, wide, two,
       "eigh: expected a square matrix"},
      {[](M<double> a, M<double> b) { return la::solve(a, b); }, three, two, "as many rows on the right"},
      {[](M<double> a, M<double> b) { return la::solve_triangular(a, b); }, three, two,
       "as many rows on the right"},
      {[](M<double> a, M<double> b) { return la::cholesky_solve(a, b); }, three, two,
       "as many rows on the right"},
      {[](M<double> a, M<double> b) { return la::lu_solve(la::lu(a), b); }, three, two,
       "as many rows on the right"},
      {[](M<double> a, M<double> b) { return la::product(a, b); }, three, two,
       "product: expected as many columns"},
      {[](M<double> a, M<double>) { return la::polar(a).u; }, wide, two,
       "polar: expected no more columns than rows"},
      {[](M<double> a, M<double>) { return la::sqrtm(a); }, wide, two, "sqrtm: expected a square matrix"},
      {[](M<double> a, M<double>) { return la::logm(a); }, wide, two, "spectral: expected a square matrix"},
      {[](M<double> a, M<double> b) { return la::lstsq(a, b); }, three, two, "as many rows on the right"},
  };
  for (const auto& [f, a, b, expected] : at_run) {
    CHECK_THAT(message(eager(f), a, b), Contains(expected) && Contains("linalg_test.cpp:"));
    CHECK_THAT(message(compile(f, {.target = Target::c, .opt = 0}), a, b),
               Contains(expected) && Contains("linalg_test.cpp:"));
  }
  // What is known beforehand is refused beforehand.
  const auto known = [](Rep<Tensor<double, 2, 3>> a) { return la::inverse(a); };
  CHECK_THAT(message([&] { compile(known, {.target = Target::c}); }),
             Contains("inverse: expected a square matrix") && Contains("linalg_test.cpp:"));
  const auto rank = [](Rep<Array<double>> a) { return la::det(a); };
  CHECK_THAT(message([&] { compile(rank, {.target = Target::c}); }),
             Contains("det: expected an operand of rank 2 to 8"));
  const auto ranks = [](Batch a, M<double> b) { return la::product(a, b); };
  CHECK_THAT(message([&] { compile(ranks, {.target = Target::c}); }),
             Contains("product: expected an operand of rank 3"));
  const auto batches = [](Batches a, Batches b) { return la::solve(a, b); };
  CHECK_THAT(message(compile(batches, {.target = Target::c, .opt = 0}), TensorValue<double>({2, 3, 2, 2}),
                     TensorValue<double>({2, 1, 2, 2})),
             Contains("solve: expected batches of the same sizes") && Contains("linalg_test.cpp:"));
  const auto numbers = [](Batches a) { return la::det(Rep<Tensor<double>>(a)); };
  CHECK_THAT(message([&] { compile(numbers, {.target = Target::c}); }),
             Contains("expected a tensor of declared rank"));
  const auto undeclared = [](Batch a) { return la::det(Rep<Tensor<double>>(a)); };
  CHECK_THAT(message([&] { compile(undeclared, {.target = Target::c}); }),
             Contains("expected a tensor of declared rank"));
}

TEST_CASE("linear algebra: from several threads") {
  const auto f =
      compile([](M<double> a) { return la::logdet(a + transpose(a)) + sum(M<double>(la::solve(a, a))); },
              {.target = Target::c, .opt = 0});
  const auto a = random_matrix<double>(30, 30, 7, 20);
  const double expected = f(a);
  std::vector<double> results(4);
  std::vector<std::thread> threads;
  for (double& r : results)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) r = f(a);
    });
  for (std::thread& t : threads) t.join();
  for (const double r : results) CHECK(r == Approx(expected));
}
