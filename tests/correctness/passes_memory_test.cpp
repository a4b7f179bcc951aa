// Passes take little memory beside what a program asks for: programs whose tables, arrays of each lane and sums of
// each thread would be large.
#include <thread>

#include "agree.hpp"

using namespace lantern;
using namespace lantern::core;
using namespace lantern::test;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using N = Rep<Array<std::int64_t>>;

constexpr std::int64_t megabyte = 1 << 20;

template <class F>
D total(const I& n, F f) {
  return FOR(0, n, D(0.0), [&](I i, D sum) { return sum + f(i); });
}

/// The value and the bytes of workspace of a call in a thread that has made no other.
template <class F, class... X>
auto in_new_thread(const F& f, const X&... x) {
  std::pair<decltype(f(x...)), std::int64_t> result;
  std::thread([&] {
    result.first = f(x...);
    result.second = driver::workspace_bytes();
  }).join();
  return result;
}

std::vector<double> numbers(std::size_t n, double shift) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(shift + 1.3 * static_cast<double>(i)) / 2;
  return v;
}

}  // namespace

TEST_CASE("a table of all combinations is made where it is small", "[passes][memory]") {
  const auto f = [](A a, A b, A c, I times) {
    return total(times, [&](I t) {
      return cast<double>(t + 1) * total(a.size(), [&](I i) {
               return total(b.size(), [&](I j) {
                 return total(c.size(), [&](I k) { return exp(a[i] + b[j] + c[k]); });
               });
             });
    });
  };
  for (const Target target : {Target::c, Target::cpp}) {
    const auto compiled = compile(f, {.target = target, .opt = 3});
    for (const std::size_t n : {5, 150}) {
      const std::vector<double> a = numbers(n, 0.1), b = numbers(n, 0.2), c = numbers(n, 0.3);
      const auto sum = [](const std::vector<double>& v) {
        double s = 0;
        for (const double x : v) s += std::exp(x);
        return s;
      };
      const auto [value, bytes] = in_new_thread(compiled, a, b, c, 2);
      CHECK(agree::close(value, 3 * sum(a) * sum(b) * sum(c), 1e-9));
      // 150^3 numbers are 27 MB.
      CHECK(bytes < megabyte);
    }
  }
}

TEST_CASE("a large array of each iteration's own is there once, not for each lane", "[passes][memory]") {
  constexpr std::int64_t n = 200'000;
  const auto f = [](A x) {
    return total(x.size(), [&](I i) {
      const auto own = FOR(1, n, fill(x[i], n), [&](I k, A a) { return a.set(k, 0.5 * a[k - 1] + x[i]); });
      return own[n - 1] * own[n / 2];
    });
  };
  const std::vector<double> x = numbers(70, 0.2);
  double expected = 0;
  for (const double v : x) expected += 4 * v * v;
  const auto [value, bytes] = in_new_thread(compile(f, {.target = Target::cpp, .opt = 3}), x);
  CHECK(agree::close(value, expected, 1e-9));
  CHECK(bytes < 20 * megabyte);
}

TEST_CASE("many threads share what they add to a large tensor", "[passes][memory][threads]") {
  const auto f = [](A x, N at, I size) {
    return FOR(0, x.size(), fill(D(0.0), size), [&](I i, A sums) {
      const D v = FOR(0, 12, x[i], [](I, D s) { return sin(s + 1.0); });
      return sums.set(at[i], sums[at[i]] + v);
    });
  };
  constexpr std::int64_t size = 1 << 19;
  const std::vector<double> x = numbers(1 << 20, 0.7);
  std::vector<std::int64_t> at(x.size());
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::int64_t>(i * 7919 % size);
  const auto expected = compile(f, {.target = Target::cpp, .opt = 3})(x, at, size);
  for (const int threads : {2, 16}) {
    const auto [got, bytes] =
        in_new_thread(compile(f, {.target = Target::cpp, .opt = 3, .threads = threads}), x, at, size);
    double error = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) error = std::max(error, std::abs(got[i] - expected[i]));
    CHECK(error < 1e-12);
    // The sums are 4 MB; of 16 threads with three ranges each they would be 200 MB.
    CHECK(bytes < 100 * megabyte);
  }
}
