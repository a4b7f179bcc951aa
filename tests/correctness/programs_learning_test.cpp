// Objectives of machine learning.
#include "program_check.hpp"

namespace lantern::test {
namespace {

template <class T>
using Element = std::remove_cvref_t<T>;

TEST_CASE("programs: logistic regression", "[programs]") {
  const auto staged = [](Vec w, Num bias, Mat x, Vec y) {
    const Int n = x.dim(0), d = x.dim(1);
    const Num loss = total(n, [&](Int i) {
      const Num z = bias + total(d, [&](Int j) { return w[j] * x(i, j); });
      return IF(
          z > 0.0, [&] { return log1p(exp(-z)) + (1.0 - y[i]) * z; },
          [&] { return log1p(exp(z)) - y[i] * z; });
    });
    return loss / cast<double>(n) + 0.01 * total(d, [&](Int j) { return w[j] * w[j]; });
  };
  const auto plain = [](const auto& w, auto bias, const auto& x, const auto& y) {
    using T = decltype(bias);
    T loss = 0.0;
    for (i64 i = 0; i < x.rows; ++i) {
      T z = bias;
      for (i64 j = 0; j < x.cols; ++j) z += w[j] * x(i, j);
      if (value(z) > 0)
        loss += log1p(exp(-z)) + (1.0 - y[i]) * z;
      else
        loss += log1p(exp(z)) - y[i] * z;
    }
    T s = loss / static_cast<double>(x.rows), r = 0.0;
    for (i64 j = 0; j < x.cols; ++j) r += w[j] * w[j];
    return T(s + 0.01 * r);
  };
  auto p = checked<double(Array<double>, double, Matrix, Array<double>), 0, 1>(staged, plain);
  for (auto [n, d] :
       std::vector<std::pair<i64, i64>>{{1, 1}, {3, 7}, {7, 3}, {31, 33}, {33, 0}, {100, 20}, {1000, 50}})
    p(numbers(d, 0.0), 0.1, grid(n, d, 0, 1), [&] {
      auto y = numbers(n);
      for (double& v : y) v = v > 0.1;
      return y;
    }());
}

TEST_CASE("programs: a perceptron of two layers", "[programs]") {
  // hand-written loops, weights as matrices
  const auto staged = [](Mat w1, Vec b1, Mat w2, Vec b2, Mat x, Ints label) {
    const Int n = x.dim(0);
    return total(n,
                 [&](Int i) {
                   const Vec h = tabulate(b1.size(), [&](Int k) {
                     return tanh(b1[k] + total(x.dim(1), [&](Int j) { return w1(k, j) * x(i, j); }));
                   });
                   const Vec o = tabulate(b2.size(), [&](Int k) {
                     return b2[k] + total(b1.size(), [&](Int j) { return w2(k, j) * h[j]; });
                   });
                   const Num top = FOR(1, o.size(), o[0], [&](Int k, Num m) { return max(m, o[k]); });
                   return top + log(total(o.size(), [&](Int k) { return exp(o[k] - top); })) - o[label[i]];
                 }) /
           cast<double>(n);
  };
  const auto plain = [](const auto& w1, const auto& b1, const auto& w2, const auto& b2, const auto& x,
                        const auto& label) {
    using T = Element<decltype(b1[0])>;
    T loss = 0.0;
    std::vector<T> h(b1.size()), o(b2.size());
    for (i64 i = 0; i < x.rows; ++i) {
      for (i64 k = 0; k < w1.rows; ++k) {
        T s = b1[k];
        for (i64 j = 0; j < x.cols; ++j) s += w1(k, j) * x(i, j);
        h[k] = tanh(s);
      }
      for (i64 k = 0; k < w2.rows; ++k) {
        T s = b2[k];
        for (i64 j = 0; j < w2.cols; ++j) s += w2(k, j) * h[j];
        o[k] = s;
      }
      T top = o[0];
      for (const T& v : o) top = max(top, v);
      T s = 0.0;
      for (const T& v : o) s += exp(v - top);
      loss += top + log(s) - o[label[i]];
    }
    return T(loss / static_cast<double>(x.rows));
  };
  auto p = checked<double(Matrix, Array<double>, Matrix, Array<double>, Matrix, Array<i64>), 0, 1, 2, 3>(
      staged, plain, {.lanes = false});
  for (auto [n, d, h, o] : std::vector<std::tuple<i64, i64, i64, i64>>{
           {1, 1, 1, 1}, {3, 7, 5, 2}, {7, 3, 31, 10}, {33, 8, 9, 3}, {200, 30, 20, 10}})
    p(grid(h, d, 0, 0.5), numbers(h), grid(o, h, 0, 0.5, 0.7), numbers(o), grid(n, d, 0, 1, 0.9),
      places(n, o));
  // with tensors, whole batch
  const auto tensors = [](Mat w1, Vec b1, Mat w2, Vec b2, Mat x, Ints label) {
    using T = Rep<Tensor<double>>;
    const T h = tanh(matmul(x, transpose(w1)) + as_tensor(b1));
    const Mat o = matmul(h, transpose(w2)) + as_tensor(b2);
    return total(x.dim(0), [&](Int i) { return logsumexp(o.row(i)) - o(i, label[i]); }) /
           cast<double>(x.dim(0));
  };
  auto t = checked<double(Matrix, Array<double>, Matrix, Array<double>, Matrix, Array<i64>), 0, 1, 2, 3>(
      tensors, plain, {.lanes = false});
  for (auto [n, d, h, o] : std::vector<std::tuple<i64, i64, i64, i64>>{
           {1, 1, 1, 1}, {3, 7, 5, 2}, {7, 3, 31, 10}, {33, 8, 9, 3}, {200, 30, 20, 10}})
    t(grid(h, d, 0, 0.5), numbers(h), grid(o, h, 0, 0.5, 0.7), numbers(o), grid(n, d, 0, 1, 0.9),
      places(n, o));
}

TEST_CASE("programs: distances to the nearest centre", "[programs]") {
  const auto staged = [](Mat centres, Mat x) {
    return total(x.dim(0), [&](Int i) {
      return FOR(0, centres.dim(0), Num(std::numeric_limits<double>::infinity()), [&](Int k, Num best) {
        const Num d = total(x.dim(1), [&](Int j) {
          const Num e = x(i, j) - centres(k, j);
          return e * e;
        });
        return min(best, d);
      });
    });
  };
  const auto plain = [](const auto& c, const auto& x) {
    using T = Element<decltype(c.data[0])>;
    T s = 0.0;
    for (i64 i = 0; i < x.rows; ++i) {
      T best = std::numeric_limits<double>::infinity();
      for (i64 k = 0; k < c.rows; ++k) {
        T d = 0.0;
        for (i64 j = 0; j < x.cols; ++j) {
          const T e = x(i, j) - c(k, j);
          d += e * e;
        }
        best = min(best, d);
      }
      s += best;
    }
    return s;
  };
  auto p = checked<double(Matrix, Matrix), 0>(staged, plain, {.lanes = false});
  for (auto [n, d, k] : std::vector<std::tuple<i64, i64, i64>>{
           {0, 3, 2}, {1, 1, 1}, {3, 7, 5}, {31, 3, 4}, {33, 10, 7}, {1000, 8, 10}})
    p(grid(k, d, 0, 1), grid(n, d, 0, 1, 0.37));
  // second objective: the nearest centre by index, as integers in the state
  const auto nearest = [](Mat centres, Mat x) {
    return total(x.dim(0), [&](Int i) {
      const auto [best, at] =
          FOR(0, centres.dim(0), std::tuple(Num(1e300), Int(0)), [&](Int k, Num best, Int at) {
            const Num d = total(x.dim(1), [&](Int j) {
              const Num e = x(i, j) - centres(k, j);
              return e * e;
            });
            return IF(
                d < best, [&] { return std::tuple(d, k); }, [&] { return std::tuple(best, at); });
          });
      return best + 0.1 * centres(at, 0);
    });
  };
  const auto nearest_plain = [](const auto& c, const auto& x) {
    using T = Element<decltype(c.data[0])>;
    T s = 0.0;
    for (i64 i = 0; i < x.rows; ++i) {
      T best = 1e300;
      i64 at = 0;
      for (i64 k = 0; k < c.rows; ++k) {
        T d = 0.0;
        for (i64 j = 0; j < x.cols; ++j) {
          const T e = x(i, j) - c(k, j);
          d += e * e;
        }
        if (value(d) < value(best)) best = d, at = k;
      }
      s += best + 0.1 * c(at, 0);
    }
    return s;
  };
  auto q = checked<double(Matrix, Matrix), 0>(nearest, nearest_plain, {.lanes = false});
  for (auto [n, d, k] : std::vector<std::tuple<i64, i64, i64>>{
           {0, 3, 2}, {1, 1, 1}, {3, 7, 5}, {31, 3, 4}, {33, 10, 7}, {1000, 8, 10}})
    q(grid(k, d, 0, 1), grid(n, d, 0, 1, 0.37));
}

TEST_CASE("programs: mixtures of normal distributions", "[programs]") {
  // diagonal covariance, K in the middle; logs of weights not normalised
  const auto diagonal = [](Vec alphas, Mat means, Mat logs, Mat x) {
    const Int K = alphas.size(), D = x.dim(1);
    return total(x.dim(0), [&](Int n) {
      const Vec t = tabulate(K, [&](Int k) {
        return alphas[k] + total(D, [&](Int d) {
                 const Num z = (x(n, d) - means(k, d)) * exp(logs(k, d));
                 return logs(k, d) - 0.5 * z * z;
               });
      });
      const Num top = FOR(1, K, t[0], [&](Int k, Num m) { return max(m, t[k]); });
      return top + log(total(K, [&](Int k) { return exp(t[k] - top); }));
    });
  };
  const auto diagonal_plain = [](const auto& alphas, const auto& means, const auto& logs, const auto& x) {
    using T = Element<decltype(alphas[0])>;
    T out = 0.0;
    const i64 K = static_cast<i64>(alphas.size());
    std::vector<T> t(K);
    Grid<T> e(logs.rows, logs.cols);
    for (std::size_t i = 0; i < e.data.size(); ++i) e.data[i] = exp(logs.data[i]);
    for (i64 n = 0; n < x.rows; ++n) {
      for (i64 k = 0; k < K; ++k) {
        T s = alphas[k];
        for (i64 d = 0; d < x.cols; ++d) {
          const T z = (x(n, d) - means(k, d)) * e(k, d);
          s += logs(k, d) - 0.5 * z * z;
        }
        t[k] = s;
      }
      T top = t[0];
      for (const T& v : t) top = max(top, v);
      T s = 0.0;
      for (const T& v : t) s += exp(v - top);
      out += top + log(s);
    }
    return out;
  };
  using Sig = double(Array<double>, Matrix, Matrix, Matrix);
  auto p = checked<Sig, 0, 1, 2>(diagonal, diagonal_plain, {.lanes = false});
  for (auto [n, d, k] : std::vector<std::tuple<i64, i64, i64>>{
           {0, 3, 2}, {1, 1, 1}, {3, 7, 5}, {31, 3, 4}, {33, 10, 7}, {1000, 10, 5}, {1000, 20, 25}})
    p(numbers(k), grid(k, d, 0, 1), grid(k, d, 0, 0.3), grid(n, d, 0, 1, 0.37));
  // full covariance, row-major lower triangle in one array with the diagonal in place
  const auto full = [](Vec alphas, Mat means, Mat chol, Mat x) {
    const Int K = alphas.size(), D = x.dim(1);
    return total(x.dim(0), [&](Int n) {
      return logsumexp(tabulate(K, [&](Int k) {
        const auto [square, logs] = FOR(0, D, std::tuple(Num(0.0), Num(0.0)), [&](Int i, Num sq, Num lg) {
          const Num y = exp(chol(k, i * (i + 1) / 2 + i)) * (x(n, i) - means(k, i)) + total(i, [&](Int j) {
                          return chol(k, i * (i + 1) / 2 + j) * (x(n, j) - means(k, j));
                        });
          return std::tuple(sq + y * y, lg + chol(k, i * (i + 1) / 2 + i));
        });
        return alphas[k] + logs - 0.5 * square;
      }));
    });
  };
  const auto full_plain = [](const auto& alphas, const auto& means, const auto& chol, const auto& x) {
    using T = Element<decltype(alphas[0])>;
    T out = 0.0;
    const i64 K = static_cast<i64>(alphas.size()), D = x.cols;
    std::vector<T> t(K), c(D);
    Grid<T> e(K, D);
    for (i64 k = 0; k < K; ++k)
      for (i64 i = 0; i < D; ++i) e(k, i) = exp(chol(k, i * (i + 1) / 2 + i));
    for (i64 n = 0; n < x.rows; ++n) {
      for (i64 k = 0; k < K; ++k) {
        for (i64 i = 0; i < D; ++i) c[i] = x(n, i) - means(k, i);
        T s = 0.0, l = 0.0;
        for (i64 i = 0; i < D; ++i) {
          T y = e(k, i) * c[i];
          for (i64 j = 0; j < i; ++j) y += chol(k, i * (i + 1) / 2 + j) * c[j];
          s += y * y;
          l += chol(k, i * (i + 1) / 2 + i);
        }
        t[k] = alphas[k] + l - 0.5 * s;
      }
      T top = t[0];
      for (const T& v : t) top = max(top, v);
      T s = 0.0;
      for (const T& v : t) s += exp(v - top);
      out += top + log(s);
    }
    return out;
  };
  auto q = checked<Sig, 0, 1, 2>(full, full_plain, {.lanes = false});
  for (auto [n, d, k] : std::vector<std::tuple<i64, i64, i64>>{
           {0, 3, 2}, {1, 1, 1}, {3, 7, 5}, {31, 3, 4}, {33, 10, 7}, {1000, 10, 5}, {1000, 20, 25}})
    q(numbers(k), grid(k, d, 0, 1), grid(k, d * (d + 1) / 2, 0, 0.3), grid(n, d, 0, 1, 0.37));
  // points as columns, components in the outer loop, responsibilities kept in a matrix
  const auto columns = [](Vec alphas, Mat means, Mat logs, Mat xt) {
    const Int K = alphas.size(), D = xt.dim(0), N = xt.dim(1);
    const Mat terms = FOR(0, K, fill(Num(0.0), K, N), [&](Int k, Mat m) {
      return FOR(0, N, m, [&](Int n, Mat m) {
        const Num s = total(D, [&](Int d) {
          const Num z = (xt(d, n) - means(k, d)) * exp(logs(k, d));
          return logs(k, d) - 0.5 * z * z;
        });
        return m.set(k, n, alphas[k] + s);
      });
    });
    return total(N, [&](Int n) {
      const Num top = FOR(1, K, terms(0, n), [&](Int k, Num m) { return max(m, terms(k, n)); });
      return top + log(total(K, [&](Int k) { return exp(terms(k, n) - top); }));
    });
  };
  const auto columns_plain = [diagonal_plain](const auto& alphas, const auto& means, const auto& logs,
                                              const auto& xt) {
    auto x = xt;
    x.rows = xt.cols, x.cols = xt.rows;
    for (i64 i = 0; i < x.rows; ++i)
      for (i64 j = 0; j < x.cols; ++j) x(i, j) = xt(j, i);
    return diagonal_plain(alphas, means, logs, x);
  };
  auto r = checked<Sig, 0, 1, 2>(columns, columns_plain, {.lanes = false});
  for (auto [n, d, k] : std::vector<std::tuple<i64, i64, i64>>{
           {0, 3, 2}, {1, 1, 1}, {3, 7, 5}, {31, 3, 4}, {33, 10, 7}, {1000, 10, 5}})
    r(numbers(k), grid(k, d, 0, 1), grid(k, d, 0, 0.3), grid(d, n, 0, 1, 0.37));
}

TEST_CASE("programs: a hidden Markov model, forward", "[programs]") {
  const auto staged = [](Vec start, Mat transition, Mat emission, Ints seen) {
    const Int S = start.size(), n = seen.size();
    const auto lse = [&](auto f) {
      const Num top = FOR(1, S, f(Int(0)), [&](Int k, Num m) { return max(m, f(k)); });
      return top + log(total(S, [&](Int k) { return exp(f(k) - top); }));
    };
    const Vec first = tabulate(S, [&](Int s) { return start[s] + emission(s, seen[0]); });
    const Vec last = FOR(1, n, first, [&](Int t, Vec a) {
      return tabulate(S, [&](Int s) {
        return emission(s, seen[t]) + lse([&](Int r) { return a[r] + transition(r, s); });
      });
    });
    return lse([&](Int s) { return last[s]; });
  };
  const auto plain = [](const auto& start, const auto& transition, const auto& emission, const auto& seen) {
    using T = Element<decltype(start[0])>;
    const i64 S = static_cast<i64>(start.size());
    const auto lse = [&](auto f) {
      T top = f(0);
      for (i64 k = 1; k < S; ++k) top = max(top, f(k));
      T s = 0.0;
      for (i64 k = 0; k < S; ++k) s += exp(f(k) - top);
      return T(top + log(s));
    };
    std::vector<T> a(S), b(S);
    for (i64 s = 0; s < S; ++s) a[s] = start[s] + emission(s, seen[0]);
    for (std::size_t t = 1; t < seen.size(); ++t) {
      for (i64 s = 0; s < S; ++s)
        b[s] = emission(s, seen[t]) + lse([&](i64 r) -> T { return a[r] + transition(r, s); });
      std::swap(a, b);
    }
    return lse([&](i64 s) -> T { return a[s]; });
  };
  auto p = checked<double(Array<double>, Matrix, Matrix, Array<i64>), 0, 1, 2>(staged, plain);
  for (auto [s, o, n] : std::vector<std::tuple<i64, i64, i64>>{
           {1, 1, 1}, {3, 4, 1}, {3, 4, 7}, {7, 5, 33}, {31, 3, 20}, {8, 10, 1000}})
    p(numbers(s, -1), grid(s, s, -1, 0.5), grid(s, o, -1, 0.8), places(n, o));
}

TEST_CASE("programs: attention to what came before", "[programs]") {
  // one head of attention by loops and softmax cross entropy of a sequence
  const auto staged = [](Mat q, Mat k, Mat v) {
    const Int n = q.dim(0), d = q.dim(1);
    return total(n, [&](Int i) {
      const Vec s = tabulate(i + 1, [&](Int j) {
        return total(d, [&](Int c) { return q(i, c) * k(j, c); }) / sqrt(cast<double>(d));
      });
      const Num top = FOR(0, i + 1, Num(-1e300), [&](Int j, Num m) { return max(m, s[j]); });
      const Num z = total(i + 1, [&](Int j) { return exp(s[j] - top); });
      return total(d, [&](Int c) {
        const Num o = total(i + 1, [&](Int j) { return exp(s[j] - top) / z * v(j, c); });
        return o * o * cast<double>(c + 1);
      });
    });
  };
  const auto plain = [](const auto& q, const auto& k, const auto& v) {
    using T = Element<decltype(q.data[0])>;
    const i64 n = q.rows, d = q.cols;
    T out = 0.0;
    std::vector<T> s(n);
    for (i64 i = 0; i < n; ++i) {
      T top = -1e300, z = 0.0;
      for (i64 j = 0; j <= i; ++j) {
        T a = 0.0;
        for (i64 c = 0; c < d; ++c) a += q(i, c) * k(j, c);
        s[j] = a / std::sqrt(static_cast<double>(d));
        top = max(top, s[j]);
      }
      for (i64 j = 0; j <= i; ++j) s[j] = exp(s[j] - top), z += s[j];
      for (i64 c = 0; c < d; ++c) {
        T o = 0.0;
        for (i64 j = 0; j <= i; ++j) o += s[j] / z * v(j, c);
        out += o * o * static_cast<double>(c + 1);
      }
    }
    return out;
  };
  auto p = checked<double(Matrix, Matrix, Matrix), 0, 1, 2>(staged, plain, {.lanes = false});
  for (auto [n, d] : std::vector<std::pair<i64, i64>>{{0, 3}, {1, 1}, {3, 7}, {7, 3}, {33, 8}, {100, 16}})
    p(grid(n, d, 0, 1), grid(n, d, 0, 1, 0.7), grid(n, d, 0, 1, 0.37));
}

}  // namespace
}  // namespace lantern::test
