// Linear algebra and array programs.
#include "program_check.hpp"

namespace lantern::test {
namespace {

template <class T>
using Element = std::remove_cvref_t<T>;

static Grid<double> definite(i64 n) {
  Grid<double> a(n, n);
  for (i64 i = 0; i < n; ++i)
    for (i64 j = 0; j < n; ++j)
      a(i, j) = std::cos(0.7 * static_cast<double>(i - j)) / (1.0 + static_cast<double>(std::abs(i - j))) +
                (i == j ? 2.0 : 0.0);
  return a;
}

TEST_CASE("programs: Cholesky factors, dense and banded", "[programs]") {
  // log-det and a triangular solve, in place in a matrix, by rows
  const auto staged = [](Mat a, Vec b) {
    const Int n = b.size();
    const Mat l = FOR(0, n, a, [&](Int i, Mat m) {
      const Mat row = FOR(0, i, m, [&](Int j, Mat m) {
        const Num s = FOR(0, j, m(i, j), [&](Int k, Num s) { return s - m(i, k) * m(j, k); });
        return m.set(i, j, s / m(j, j));
      });
      const Num d = FOR(0, i, row(i, i), [&](Int k, Num s) { return s - row(i, k) * row(i, k); });
      return row.set(i, i, sqrt(d));
    });
    const Vec y = FOR(0, n, b, [&](Int i, Vec y) {
      const Num s = FOR(0, i, y[i], [&](Int j, Num s) { return s - l(i, j) * y[j]; });
      return y.set(i, s / l(i, i));
    });
    return total(n, [&](Int i) { return log(l(i, i)) + 0.5 * y[i] * y[i]; });
  };
  const auto plain = [](const auto& a, const auto& b) {
    using T = Element<decltype(b[0])>;
    auto l = a;
    const i64 n = a.rows;
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j < i; ++j) {
        T s = l(i, j);
        for (i64 k = 0; k < j; ++k) s -= l(i, k) * l(j, k);
        l(i, j) = s / l(j, j);
      }
      T d = l(i, i);
      for (i64 k = 0; k < i; ++k) d -= l(i, k) * l(i, k);
      l(i, i) = sqrt(d);
    }
    auto y = b;
    for (i64 i = 0; i < n; ++i) {
      T s = y[i];
      for (i64 j = 0; j < i; ++j) s -= l(i, j) * y[j];
      y[i] = s / l(i, i);
    }
    T out = 0.0;
    for (i64 i = 0; i < n; ++i) out += log(l(i, i)) + 0.5 * y[i] * y[i];
    return out;
  };
  auto p = checked<double(Matrix, Array<double>), 0, 1>(staged, plain, {.tolerance = 1e-9, .lanes = false});
  for (i64 n : {0, 1, 2, 3, 7, 31, 33, 100}) p(definite(n), numbers(n, 0.5));
  // right-looking: outer-product updates
  const auto right = [](Mat a, Vec b) {
    const Int n = b.size();
    const Mat l = FOR(0, n, a, [&](Int k, Mat m) {
      const Num d = sqrt(m(k, k));
      const Mat c = FOR(k + 1, n, m.set(k, k, d), [&](Int i, Mat m) { return m.set(i, k, m(i, k) / d); });
      return FOR(k + 1, n, c, [&](Int i, Mat m) {
        return FOR(k + 1, i + 1, m, [&](Int j, Mat m) { return m.set(i, j, m(i, j) - c(i, k) * c(j, k)); });
      });
    });
    const Vec y = FOR(0, n, b, [&](Int i, Vec y) {
      const Num s = FOR(0, i, y[i], [&](Int j, Num s) { return s - l(i, j) * y[j]; });
      return y.set(i, s / l(i, i));
    });
    return total(n, [&](Int i) { return log(l(i, i)) + 0.5 * y[i] * y[i]; });
  };
  auto q = checked<double(Matrix, Array<double>), 0, 1>(right, plain, {.tolerance = 1e-9, .lanes = false});
  for (i64 n : {0, 1, 2, 3, 7, 31, 33}) q(definite(n), numbers(n, 0.5));
  // banded: bands in rows of a matrix of width w
  const auto banded = [](Mat a) {
    const Int n = a.dim(0), w = a.dim(1);
    const Mat l = FOR(0, n, a, [&](Int i, Mat m) {
      const Int from = max(i - w + 1, Int(0));
      return FOR(from, i + 1, m, [&](Int j, Mat m) {
        const Num s = FOR(from, j, m(i, i - j), [&](Int k, Num s) {
          return IF(
              j - k < w, [&] { return s - m(i, i - k) * m(j, j - k); }, [&] { return s; });
        });
        return IF(
            j == i, [&] { return m.set(i, 0, sqrt(s)); }, [&] { return m.set(i, i - j, s / m(j, 0)); });
      });
    });
    return total(n, [&](Int i) { return log(l(i, 0)); });
  };
  const auto banded_plain = [](const auto& a) {
    using T = Element<decltype(a.data[0])>;
    auto m = a;
    const i64 w = a.cols;
    T out = 0.0;
    for (i64 i = 0; i < a.rows; ++i) {
      const i64 from = std::max<i64>(i - w + 1, 0);
      for (i64 j = from; j <= i; ++j) {
        T s = m(i, i - j);
        for (i64 k = from; k < j; ++k)
          if (j - k < w) s -= m(i, i - k) * m(j, j - k);
        m(i, i - j) = j == i ? T(sqrt(s)) : T(s / m(j, 0));
      }
      out += log(m(i, 0));
    }
    return out;
  };
  auto r = checked<double(Matrix), 0>(banded, banded_plain, {.tolerance = 1e-9});
  for (auto [n, w] : std::vector<std::pair<i64, i64>>{{0, 1}, {1, 1}, {3, 2}, {7, 3}, {33, 4}, {1000, 3}})
    r([&] {
      Grid<double> a(n, w);
      for (i64 i = 0; i < n; ++i)
        for (i64 j = 0; j < w; ++j)
          a(i, j) = j == 0 ? 3.0 + 0.1 * std::sin(static_cast<double>(i))
                           : 0.4 * std::cos(static_cast<double>(3 * i + j));
      return a;
    }());
}

TEST_CASE("programs: steps of conjugate gradients", "[programs]") {
  const auto staged = [](Mat a, Vec b, Int steps) {
    const Int n = b.size();
    const auto inner = [&](Vec u, Vec v) { return total(n, [&](Int i) { return u[i] * v[i]; }); };
    const auto [x, r, p, rr] = FOR(
        0, steps, std::tuple(fill(Num(0.0), n), b, b, inner(b, b)), [&](Int, Vec x, Vec r, Vec p, Num rr) {
          const Vec ap = tabulate(n, [&](Int i) { return total(n, [&](Int j) { return a(i, j) * p[j]; }); });
          const Num alpha = rr / inner(p, ap);
          const Vec x2 = tabulate(n, [&](Int i) { return x[i] + alpha * p[i]; });
          const Vec r2 = tabulate(n, [&](Int i) { return r[i] - alpha * ap[i]; });
          const Num rr2 = inner(r2, r2);
          return std::tuple(x2, r2, tabulate(n, [&](Int i) { return r2[i] + rr2 / rr * p[i]; }), rr2);
        });
    return total(n, [&](Int i) { return x[i] * x[i] * cast<double>(i + 1); });
  };
  const auto plain = [](const auto& a, const auto& b, i64 steps) {
    using T = Element<decltype(b[0])>;
    const i64 n = static_cast<i64>(b.size());
    std::vector<T> x(n), r(n), p(n), ap(n);
    T rr = 0.0;
    for (i64 i = 0; i < n; ++i) r[i] = p[i] = b[i], rr += r[i] * r[i];
    for (i64 s = 0; s < steps; ++s) {
      T pap = 0.0;
      for (i64 i = 0; i < n; ++i) {
        T y = 0.0;
        for (i64 j = 0; j < n; ++j) y += a(i, j) * p[j];
        ap[i] = y;
        pap += p[i] * y;
      }
      const T alpha = rr / pap;
      T rr2 = 0.0;
      for (i64 i = 0; i < n; ++i) x[i] += alpha * p[i], r[i] -= alpha * ap[i], rr2 += r[i] * r[i];
      for (i64 i = 0; i < n; ++i) p[i] = r[i] + rr2 / rr * p[i];
      rr = rr2;
    }
    T out = 0.0;
    for (i64 i = 0; i < n; ++i) out += x[i] * x[i] * static_cast<double>(i + 1);
    return out;
  };
  auto p =
      checked<double(Matrix, Array<double>, i64), 0, 1>(staged, plain, {.tolerance = 1e-8, .lanes = false});
  for (auto [n, s] :
       std::vector<std::pair<i64, i64>>{{0, 0}, {1, 1}, {3, 2}, {7, 3}, {33, 5}, {100, 10}, {300, 10}})
    p(definite(n), numbers(n, 0.5), s);
  // the same with tensors
  const auto tensors = [](Mat a, Vec b, Int steps) {
    using V = Rep<Tensor<double, dyn>>;
    const V v0 = V(as_tensor(b));
    const auto [x, r, p] = FOR(0, steps, std::tuple(V(v0 * 0.0), v0, v0), [&](Int, V x, V r, V p) {
      const V ap = V(matmul(a, p));
      const Num rr = dot(r, r), alpha = rr / dot(p, ap);
      const V r2 = r - alpha * ap;
      return std::tuple(V(x + alpha * p), r2, V(r2 + dot(r2, r2) / rr * p));
    });
    return total(b.size(), [&](Int i) { return x(i) * x(i) * cast<double>(i + 1); });
  };
  auto t =
      checked<double(Matrix, Array<double>, i64), 0, 1>(tensors, plain, {.tolerance = 1e-8, .lanes = false});
  for (auto [n, s] :
       std::vector<std::pair<i64, i64>>{{0, 0}, {1, 1}, {3, 2}, {7, 3}, {33, 5}, {100, 10}, {300, 10}})
    t(definite(n), numbers(n, 0.5), s);
}

TEST_CASE("programs: a polynomial at many points", "[programs]") {
  const auto staged = [](Vec c, Vec x) {
    return total(x.size(), [&](Int i) {
      return FOR(0, c.size(), 0.0, [&](Int k, Num s) { return s * x[i] + c[c.size() - 1 - k]; });
    });
  };
  const auto plain = [](const auto& c, const auto& x) {
    using T = Element<decltype(c[0])>;
    T out = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      T s = 0.0;
      for (std::size_t k = c.size(); k-- > 0;) s = s * x[i] + c[k];
      out += s;
    }
    return out;
  };
  auto p = checked<double(Array<double>, Array<double>), 0, 1>(staged, plain);
  for (auto [k, n] : std::vector<std::pair<i64, i64>>{{0, 3}, {1, 1}, {3, 7}, {7, 31}, {33, 33}, {10, 10000}})
    p(numbers(k), numbers(n, 0, 0.9));
}

TEST_CASE("programs: prefix sums, histograms, sparse products", "[programs]") {
  // prefix sums, then a nonlinear use
  const auto prefix = [](Vec a) {
    const Int n = a.size();
    const Vec s = FOR(1, n, a, [&](Int i, Vec s) { return s.set(i, s[i - 1] + s[i]); });
    return total(n, [&](Int i) { return sin(s[i]) * a[i]; });
  };
  const auto prefix_plain = [](const auto& a) {
    using T = Element<decltype(a[0])>;
    T s = 0.0, out = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) s += a[i], out += sin(s) * a[i];
    return out;
  };
  auto p = checked<double(Array<double>), 0>(prefix, prefix_plain);
  for (const i64 n : {0, 1, 2, 3, 7, 31, 33, 100, 1000, 10000}) p(numbers(n, 0.0));
  // histogram with soft weights, gather through indices with repeats
  const auto histogram = [](Vec w, Vec x, Ints at, Int bins) {
    const Vec h = FOR(0, x.size(), fill(Num(0.0), bins),
                      [&](Int i, Vec h) { return h.set(at[i], h[at[i]] + w[at[i]] * x[i] * x[i]); });
    return total(bins, [&](Int b) { return log(1.0 + h[b] * h[b]) * w[b]; }) +
           total(x.size(), [&](Int i) { return h[at[i]] * x[i]; });
  };
  const auto histogram_plain = [](const auto& w, const auto& x, const auto& at, i64 bins) {
    using T = Element<decltype(w[0])>;
    std::vector<T> h(bins);
    for (std::size_t i = 0; i < x.size(); ++i) h[at[i]] += w[at[i]] * x[i] * x[i];
    T out = 0.0;
    for (i64 b = 0; b < bins; ++b) out += log(1.0 + h[b] * h[b]) * w[b];
    for (std::size_t i = 0; i < x.size(); ++i) out += h[at[i]] * x[i];
    return out;
  };
  auto q = checked<double(Array<double>, Array<double>, Array<i64>, i64), 0, 1>(histogram, histogram_plain);
  for (auto [n, b] :
       std::vector<std::pair<i64, i64>>{{0, 3}, {1, 1}, {7, 3}, {31, 10}, {100, 1}, {1000, 16}, {100000, 64}})
    q(numbers(b, 0.5), numbers(n), places(n, b), b);
  // bins computed from values: floor and casts
  const auto binned = [](Vec x, Int bins) {
    const Vec h = FOR(0, x.size(), fill(Num(0.0), bins), [&](Int i, Vec h) {
      const Num u = min(max(x[i], Num(0.0)), Num(0.999)) * cast<double>(bins);
      const Int b = cast<i64>(floor(u));
      const Num f = u - cast<double>(b);
      const Vec g = h.set(b, h[b] + (1.0 - f));
      const Int c = min(b + 1, bins - 1);
      return g.set(c, g[c] + f);
    });
    return total(bins, [&](Int b) { return h[b] * h[b] * cast<double>(b + 1); });
  };
  const auto binned_plain = [](const auto& x, i64 bins) {
    using T = Element<decltype(x[0])>;
    std::vector<T> h(bins);
    for (const T& v : x) {
      const T u = min(max(v, T(0.0)), T(0.999)) * static_cast<double>(bins);
      const i64 b = static_cast<i64>(std::floor(value(u)));
      const T f = u - static_cast<double>(b);
      h[b] += 1.0 - f;
      h[std::min(b + 1, bins - 1)] += f;
    }
    T out = 0.0;
    for (i64 b = 0; b < bins; ++b) out += h[b] * h[b] * static_cast<double>(b + 1);
    return out;
  };
  auto r = checked<double(Array<double>, i64), 0>(binned, binned_plain);
  for (auto [n, b] :
       std::vector<std::pair<i64, i64>>{{0, 3}, {1, 1}, {7, 3}, {31, 10}, {100, 1}, {1000, 16}, {10000, 64}})
    r(numbers(n, 0.4, 0.5), b);
  // gather, sparse matrix times vector by rows (compressed)
  const auto sparse = [](Vec values, Vec x, Ints start, Ints column) {
    const Int n = start.size() - 1;
    return total(n, [&](Int i) {
      const Num y =
          FOR(start[i], start[i + 1], 0.0, [&](Int e, Num s) { return s + values[e] * x[column[e]]; });
      return y * y;
    });
  };
  const auto sparse_plain = [](const auto& values, const auto& x, const auto& start, const auto& column) {
    using T = Element<decltype(x[0])>;
    T out = 0.0;
    for (std::size_t i = 0; i + 1 < start.size(); ++i) {
      T y = 0.0;
      for (i64 e = start[i]; e < start[i + 1]; ++e) y += values[e] * x[column[e]];
      out += y * y;
    }
    return out;
  };
  auto s = checked<double(Array<double>, Array<double>, Array<i64>, Array<i64>), 0, 1>(sparse, sparse_plain);
  for (i64 n : {0, 1, 3, 33, 1000}) {
    std::vector<i64> start{0}, column;
    for (i64 i = 0; i < n; ++i) {
      for (i64 k = 0; k < i % 5; ++k) column.push_back((i * 3 + k * k) % n);
      start.push_back(static_cast<i64>(column.size()));
    }
    s(numbers(column.size()), numbers(n), start, column);
  }
}

TEST_CASE("programs: convolutions", "[programs]") {
  const auto staged = [](Vec x, Vec w) {
    const Int n = x.size(), k = w.size();
    return total(n - k + 1, [&](Int i) {
      const Num y = total(k, [&](Int j) { return w[j] * x[i + j]; });
      return max(y, Num(0.0)) * y;
    });
  };
  const auto plain = [](const auto& x, const auto& w) {
    using T = Element<decltype(x[0])>;
    T out = 0.0;
    for (i64 i = 0; i + static_cast<i64>(w.size()) <= static_cast<i64>(x.size()); ++i) {
      T y = 0.0;
      for (std::size_t j = 0; j < w.size(); ++j) y += w[j] * x[i + j];
      out += max(y, T(0.0)) * y;
    }
    return out;
  };
  auto p = checked<double(Array<double>, Array<double>), 0, 1>(staged, plain);
  for (auto [n, k] :
       std::vector<std::pair<i64, i64>>{{0, 1}, {1, 1}, {3, 7}, {7, 3}, {33, 5}, {100, 31}, {10000, 9}})
    p(numbers(n, 0.0), numbers(k, 0.0));
  const auto image = [](Mat x, Mat w, Num b) {
    const Int m = x.dim(0) - w.dim(0) + 1, n = x.dim(1) - w.dim(1) + 1;
    return total(m, [&](Int i) {
      return total(n, [&](Int j) {
        return tanh(b + total(w.dim(0), [&](Int p) {
                      return total(w.dim(1), [&](Int q) { return w(p, q) * x(i + p, j + q); });
                    }));
      });
    });
  };
  const auto image_plain = [](const auto& x, const auto& w, auto b) {
    using T = decltype(b);
    T out = 0.0;
    for (i64 i = 0; i <= x.rows - w.rows; ++i)
      for (i64 j = 0; j <= x.cols - w.cols; ++j) {
        T s = b;
        for (i64 p = 0; p < w.rows; ++p)
          for (i64 q = 0; q < w.cols; ++q) s += w(p, q) * x(i + p, j + q);
        out += tanh(s);
      }
    return out;
  };
  auto q = checked<double(Matrix, Matrix, double), 0, 1, 2>(image, image_plain, {.lanes = false});
  for (auto [m, k] : std::vector<std::pair<i64, i64>>{{1, 1}, {3, 7}, {7, 3}, {33, 5}, {64, 3}})
    q(grid(m, m + 1, 0, 1), grid(k, k, 0, 0.3), 0.1);
}

}  // namespace
}  // namespace lantern::test
