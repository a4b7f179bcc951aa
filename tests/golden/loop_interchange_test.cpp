// Loops around sums change places where what is read then lies side by side, and nowhere else.
#include <catch2/catch.hpp>
#include <cmath>

#include "around_pass.hpp"
#include "lantern/lantern.hpp"

namespace lantern {
namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using V = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;

/// y = a x, column by column.
V by_columns(M a, V x, V y) {
  FOR(0, a.dim(1), [&](I k) { FOR(0, a.dim(0), [&](I j) { y = y.set(j, y[j] + a(j, k) * x[k]); }); });
  return y;
}

/// The lower half of c - 1.5 a a^T.
M lower_half(M a, M c) {
  FOR(0, a.dim(0), [&](I i) {
    FOR(0, a.dim(1), [&](I k) {
      const D x = 1.5 * a(i, k);
      FOR(0, i + 1, [&](I j) { c = c.set(i, j, c(i, j) - x * a(j, k)); });
    });
  });
  return c;
}

/// Two products at once, each added in turn: ((c + x) - y).
M two_products(M a, M b, M c) {
  FOR(0, a.dim(0), [&](I i) {
    FOR(0, a.dim(1), [&](I k) {
      FOR(0, i + 1, [&](I j) { c = c.set(i, j, c(i, j) + a(j, k) * b(i, k) - b(j, k) * 0.5 * a(i, k)); });
    });
  });
  return c;
}

/// Row by row there is nothing to gain: a^T x.
V by_rows(M a, V x, V y) {
  FOR(0, a.dim(0), [&](I k) { FOR(0, a.dim(1), [&](I j) { y = y.set(j, y[j] + a(k, j) * x[k]); }); });
  return y;
}

/// The sum is the inner loop already.
V inner_sum(M a, V x, V y) {
  FOR(0, a.dim(1), [&](I j) { FOR(0, a.dim(0), [&](I k) { y = y.set(j, y[j] + a(k, j) * x[k]); }); });
  return y;
}

/// An iteration reads what the one before has made.
V recurrence(M a, V x, V y) {
  FOR(0, a.dim(1),
      [&](I k) { FOR(1, a.dim(0), [&](I j) { y = y.set(j, y[j] + a(j, k) * y[j - 1] * x[k]); }); });
  return y;
}

/// The bound of the inner loop is another one in each iteration.
V triangle(M a, V x, V y) {
  FOR(0, a.dim(1), [&](I k) { FOR(k, a.dim(0), [&](I j) { y = y.set(j, y[j] + a(j, k) * x[k]); }); });
  return y;
}

/// Two elements are added to: they would be added up in another order.
V neighbours(M a, V x, V y) {
  FOR(0, a.dim(1), [&](I k) {
    FOR(1, a.dim(0), [&](I j) {
      const D t = a(j, k) * x[k];
      y = y.set(j, y[j] + t);
      y = y.set(j - 1, y[j - 1] - t);
    });
  });
  return y;
}

/// What an index is read from may be anything.
V through_list(M a, Rep<Array<std::int64_t>> at, V y) {
  FOR(0, a.dim(1), [&](I k) { FOR(0, a.dim(0), [&](I j) { y = y.set(at[j], y[at[j]] + a(j, k)); }); });
  return y;
}

/// Few iterations make no inner loop.
V few(M a, V x, V y) {
  FOR(0, 3, [&](I k) { FOR(0, a.dim(0), [&](I j) { y = y.set(j, y[j] + a(j, k) * x[k]); }); });
  return y;
}

template <class F>
bool changes_places(F f) {
  const auto [before, after] = test::around_pass("loop_interchange", f);
  return before != after;
}

TEST_CASE("loop_interchange: where a sum then goes along a row", "[passes]") {
  CHECK(changes_places(by_columns));
  CHECK(changes_places(lower_half));
  CHECK(changes_places(two_products));
}

TEST_CASE("loop_interchange: what gains nothing, or would be something else, stays", "[passes]") {
  CHECK_FALSE(changes_places(by_rows));
  CHECK_FALSE(changes_places(inner_sum));
  CHECK_FALSE(changes_places(recurrence));
  CHECK_FALSE(changes_places(triangle));
  CHECK_FALSE(changes_places(neighbours));
  CHECK_FALSE(changes_places(through_list));
  CHECK_FALSE(changes_places(few));
}

std::vector<double> numbers(std::size_t n, double from) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = std::sin(from + 1.3 * static_cast<double>(i));
  return x;
}

TensorValue<double> matrix(std::int64_t rows, std::int64_t columns, double from) {
  TensorValue<double> m;
  m.shape = {rows, columns};
  m.data = numbers(static_cast<std::size_t>(rows * columns), from);
  return m;
}

std::span<const double> elements(const std::vector<double>& v) { return v; }
std::span<const double> elements(const TensorValue<double>& v) { return v.data; }

/// Values bit for bit, where arithmetic is the program's: each element adds up in its order. Compiled once,
/// for all inputs.
template <class F>
class Exact {
 public:
  explicit Exact(F f) : f_(f) {
    for (const int threads : {1, 2})
      for (const int lanes : {0, 2, 8})  // code of libtcc has none
        ways_.push_back(compile(f, {.target = lanes == 0 ? Target::c : Target::cpp,
                                    .opt = 3,
                                    .strict_math = true,
                                    .reassociate = false,
                                    .threads = threads,
                                    .lanes = lanes}));
  }
  template <class... A>
  void operator()(const A&... args) const {
    const auto expected = eager(f_)(args...);
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      CAPTURE(way);
      const auto got = ways_[way](args...);
      REQUIRE(elements(got).size() == elements(expected).size());
      for (std::size_t i = 0; i < elements(got).size(); ++i) CHECK(elements(got)[i] == elements(expected)[i]);
    }
  }

 private:
  F f_;
  std::vector<decltype(compile(std::declval<F>()))> ways_;
};

TEST_CASE("loop_interchange: values and derivatives are the same in both orders", "[passes]") {
  const Exact columns_first(by_columns);
  const Exact half(lower_half);
  const Exact two(two_products);
  for (const std::int64_t rows : {0, 1, 7, 21})
    for (const std::int64_t columns : {0, 1, 9, 20}) {
      CAPTURE(rows, columns);
      const auto a = matrix(rows, columns, 0.1);
      const auto x = numbers(static_cast<std::size_t>(columns), 0.4),
                 y = numbers(static_cast<std::size_t>(rows), 0.7);
      columns_first(a, x, y);
      half(a, matrix(rows, rows, 0.2));
      two(a, matrix(rows, columns, 0.5), matrix(rows, rows, 0.2));
    }
}

D of_columns(M a, V x, V y) {
  const V z = by_columns(a, x, y);
  return sum(z * z);
}
D of_half(M a, M c) {
  const M z = lower_half(a, c);
  return sum(z * z);
}

D of_two(M a, M b, M c) {
  const M z = two_products(a, b, c);
  return sum(z * z);
}

template <class F, class... A>
void check_gradient(F f, const A&... args) {
  const auto expected = eager(grad(f))(args...);
  for (const Target target : {Target::c, Target::cpp})
    for (const bool off : {false, true}) {
      const CompileOptions options{
          .target = target,
          .opt = 3,
          .disabled_passes = off ? std::vector<std::string>{"loop_interchange"} : std::vector<std::string>{}};
      CHECK(compile(f, options)(args...) == Approx(eager(f)(args...)).epsilon(1e-12));
      const auto got = compile(grad(f), options)(args...);
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        const auto same = [](const auto& g, const auto& e) {
          for (std::size_t i = 0; i < elements(e).size(); ++i)
            CHECK(elements(g)[i] == Approx(elements(e)[i]).epsilon(1e-11).margin(1e-12));
        };
        (same(std::get<K>(got), std::get<K>(expected)), ...);
      }
      (std::make_index_sequence<sizeof...(A)>{});
    }
}

TEST_CASE("loop_interchange: gradients", "[passes]") {
  check_gradient(of_columns, matrix(21, 13, 0.1), numbers(13, 0.4), numbers(21, 0.7));
  check_gradient(of_half, matrix(17, 19, 0.1), matrix(17, 17, 0.3));
  check_gradient(of_two, matrix(17, 19, 0.1), matrix(17, 19, 0.6), matrix(17, 17, 0.3));
}

/// What is wrong with an index is told as where no pass has run.
template <class F, class... A>
void check_failure(F f, const A&... args) {
  std::string expected;
  try {
    compile(f, {.target = Target::c, .opt = 0})(args...);
  } catch (const Error& e) {
    expected = e.what();
  }
  REQUIRE_FALSE(expected.empty());
  for (const Target target : {Target::c, Target::cpp})
    CHECK_THROWS_WITH(compile(f, {.target = target, .opt = 3})(args...), expected);
}

TEST_CASE("loop_interchange: the first index that is out of range is told", "[passes]") {
  const auto a = matrix(12, 10, 0.1);
  check_failure(by_columns, a, numbers(10, 0.4), numbers(9, 0.7));  // y is too short
  check_failure(by_columns, a, numbers(8, 0.4), numbers(12, 0.7));  // x is
  check_failure(by_columns, a, numbers(8, 0.4), numbers(9, 0.7));   // both are
  check_failure(lower_half, a, matrix(12, 5, 0.2));
}

}  // namespace
}  // namespace lantern
