// Every pass is an improvement, none is needed: a corpus of programs with each single pass switched off gives
// the derivatives that eager evaluation gives.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <functional>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using Ints = Rep<Array<std::int64_t>>;
using M = Rep<Tensor<double, dyn, dyn>>;

void check_equal(double a, double b) { CHECK(a == Approx(b).epsilon(1e-11).margin(1e-12)); }
void check_equal(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) check_equal(a[i], b[i]);
}
template <class T>
auto check_equal(const T& a, const T& b) -> decltype(a.data.size(), void()) {
  check_equal(std::vector<double>(a.data.begin(), a.data.end()),
              std::vector<double>(b.data.begin(), b.data.end()));
}
template <class... T>
void check_equal(const std::tuple<T...>& a, const std::tuple<T...>& b) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (check_equal(std::get<i>(a), std::get<i>(b)), ...); }
  (std::index_sequence_for<T...>());
}

/// Compiles with all passes and without each of them. A pass that changes nothing leaves the same text, which
/// Clang need not compile again.
template <class F, class... T>
void check_passes(F derivative, const T&... arguments) {
  const codegen::TemporaryDirectory kept;
  const auto expected = eager(derivative)(arguments...);
  const auto check = [&](const CompileOptions& options) {
    check_equal(compile(derivative, options)(arguments...), expected);
  };
  check({.target = Target::cpp, .opt = 3, .cache = std::string(kept.path())});
  check({.target = Target::cpp, .opt = 0});
  check({.target = Target::cpp, .opt = 3, .threads = 2});
  for (const passes::Pass& p : passes::passes()) {
    const std::string name(p.name);
    INFO("without " << name);
    check({.target = Target::cpp, .opt = 3, .disabled_passes = {name}, .cache = std::string(kept.path())});
    check({.target = Target::c, .opt = 3, .threads = 2, .disabled_passes = {name}});
  }
}

D total(const I& n, const std::function<D(const I&)>& f) {
  return FOR(0, n, 0.0, [&](I i, D sum) { return sum + f(i); });
}

const std::vector<double> some{0.3, -0.7, 1.2, 0.05, 0.9, -1.1, 0.4, 0.6, -0.2, 0.8, 1.5};

}  // namespace

TEST_CASE("without each pass: scalars", "[passes]") {
  check_passes(value_and_grad([](D x) {
                 return IF(
                     x > 0.5, [&] { return sin(x) * x; }, [&] { return exp(x) / (1.0 + x * x); });
               }),
               0.7);
  check_passes(value_and_grad([](D a) {
                 const auto [x, k] = WHILE(
                     std::tuple(D(1.0), I(0)),
                     [&](D y, I n) { return AND(abs(y * y - a) > 1e-9, [&] { return n < 50; }); },
                     [&](D y, I n) { return std::tuple(0.5 * (y + a / y), n + 1); });
                 return x * cast<double>(k);
               }),
               2.0);
  check_passes(value_and_grad<0>([](D x, I n) {
                 return FOR(0, n, x, [&](I i, D s) { return sin(s) + 0.1 * x * cast<double>(i % 3); });
               }),
               0.4, std::int64_t{20});
}

TEST_CASE("without each pass: functions and trees", "[passes]") {
  const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D x, I n) {
    return IF(
        n == 0, [&] { return D(1.0); }, [&] { return x * self(x, n - 1); });
  });
  check_passes(value_and_grad<0>(power), 1.1, std::int64_t{7});
  const auto last = FUN<double(double, std::int64_t)>("last", [](auto self, D x, I n) {
    return IF(
        n == 0, [&] { return x; }, [&] { return self(sin(x) + 0.2, n - 1); });
  });
  check_passes(value_and_grad<0>(last), 1.1, std::int64_t{7});
  check_passes(value_and_grad<0>([](D x, Rep<Tree<double>> t) {
                 return TREE(x, t, [&](D l, D r, Rep<Tree<double>> n) { return sin(l * r) + n.value() * x; });
               }),
               0.6,
               Tree<double>(2.0, Tree<double>(5.0), Tree<double>(-1.0, Tree<double>(0.5), Tree<double>())));
}

TEST_CASE("without each pass: arrays", "[passes]") {
  check_passes(
      value_and_grad([](A a) { return log(total(a.size(), [&](I i) { return exp(a[i] * a[i]) + 1.0; })); }),
      some);
  check_passes(value_and_grad([](A a) {
                 const A moved = FOR(0, 4, a, [](I k, A s) {
                   return FOR(0, s.size(), s, [s, k](I i, A next) {
                     return next.set(i, tanh(s[i] + 0.1 * cast<double>(k)));
                   });
                 });
                 return total(a.size(), [&](I i) { return moved[i] * a[i]; });
               }),
               some);
  check_passes(value_and_grad<0>([](A a, Ints at) {
                 const A sums = FOR(0, at.size(), fill(D(0.0), 3),
                                    [&](I i, A s) { return s.set(at[i], s[at[i]] + a[i] * a[i]); });
                 return sums[0] * sums[1] + sin(sums[2]);
               }),
               some, std::vector<std::int64_t>{0, 1, 2, 1, 0, 2, 2, 1, 0, 1, 0});
  check_passes(value_and_grad([](A a) {
                 return total(a.size(), [&](I i) {
                   return IF(
                       a[i] > 0.0, [&] { return log(1.0 + a[i]); }, [&] { return a[i] * a[i]; });
                 });
               }),
               some);
}

TEST_CASE("without each pass: steps in time", "[passes]") {
  check_passes(value_and_grad<0>([](A a, I steps) {
                 const I n = a.size();
                 const A last = FOR(0, steps, a, [&](I, A s) {
                   return FOR(1, n - 1, s, [&](I i, A v) {
                     return v.set(i, s[i] - 0.1 * s[i] * (s[i + 1] - s[i - 1]) + 0.2 * s[i - 1]);
                   });
                 });
                 return total(n, [&](I i) { return last[i] * last[i]; });
               }),
               some, std::int64_t{3});
  check_passes(value_and_grad([](A a) {
                 const I n = a.size();
                 const A next = FOR(0, n, a, [&](I i, A v) {
                   return v.set(i, IF(
                                       AND(0 < i, [&] { return i < n - 1; }),
                                       [&] { return a[i - 1] * a[i + 1]; }, [&] { return sin(a[i]); }));
                 });
                 return total(n, [&](I i) { return next[i] * next[i]; });
               }),
               some);
  const std::vector<double> plate{0.1, 0.2, -0.3, 0.4, 0.5, 0.6, -0.7, 0.8,
                                  0.9, 1.0, -1.1, 1.2, 0.3, 0.2, 0.1};
  check_passes(value_and_grad([](M a) {
                 const I m = a.dim(0), n = a.dim(1);
                 const M next = FOR(1, m - 1, a, [&](I i, M rows) {
                   return FOR(1, n - 1, rows, [&](I j, M r) {
                     return r.set(i, j, a(i, j) * a(i - 1, j) + a(i + 1, j) + a(i, j - 1) * a(i, j + 1));
                   });
                 });
                 return sum(next * next);
               }),
               TensorView<const double>(plate.data(), {3, 5}));
}

TEST_CASE("without each pass: points and matrices", "[passes]") {
  // A loop over points with a triangular matrix, and one with small dense products.
  const std::vector<double> points{0.1, 0.2, -0.3, 0.4, 0.5, 0.6, -0.7, 0.8,
                                   0.9, 1.0, -1.1, 1.2, 0.3, 0.2, 0.1};
  const std::vector<double> matrix{1.0, 0.2, 0.3, 0.4, 1.5, 0.6, 0.7, 0.8, 2.0};
  const TensorView<const double> x(points.data(), {5, 3}), l(matrix.data(), {3, 3});
  check_passes(value_and_grad([](M p, M w) {
                 return total(p.dim(0), [&](I n) {
                   return -0.5 * total(3, [&](I r) {
                     const D row = exp(w(r, r)) * p(n, r) + total(r, [&](I c) { return w(r, c) * p(n, c); });
                     return row * row;
                   });
                 });
               }),
               x, l);
  check_passes(value_and_grad([](M p, M w) { return sum(tanh(matmul(p, w))); }), x, l);
}

TEST_CASE("without each pass: forward mode, second derivatives, bounded memory", "[passes]") {
  const auto f = [](D x) { return FOR(0, 6, x, [&](I, D s) { return sin(s) * x + 0.2; }); };
  check_passes(jvp(f), 0.4, 1.0);
  check_passes(hvp(f), 0.4, 1.0);
  check_passes(value_and_grad([f](D x) { return checkpoint(sig<double(double)>(f))(x * x) * x; }), 0.4);
  check_passes(value_and_grad<0>([](D x, I n) {
                 return FOR(0, n, x, [](I, D s) { return sin(s) + 0.01 * s * s; }, {.checkpoints = 3});
               }),
               0.4, std::int64_t{40});
}

TEST_CASE("without each pass: straight-line code of some length", "[passes]") {
  check_passes(grad([](D x) {
                 D a = x, b = 1.0 - x;
                 for (int i = 0; i < 400; ++i) {
                   const D c = a * b;
                   a = sin(c) + 0.5 * a;
                   if (i % 8 == 0) b = b * 0.99 + a * 1e-3;
                 }
                 return a + b;
               }),
               0.3);
}
