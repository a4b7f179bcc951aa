// canonical_loops: what moves out of a loop's condition, in both forms, and what loops then are.
#include "lantern/compiler/passes/canonical/canonical_loops.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "lantern/ir/parse.hpp"
#include "lantern/ir/print.hpp"
#include "lantern/ir/verify.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;
using Catch::Matchers::Contains;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;

/// Both texts up to names.
void check(const std::string& before, const std::string& expected) {
  const auto module = ir::parse(before);
  ir::verify(*module);
  passes::canonical_loops(*module);
  ir::verify(*module);
  CHECK(ir::print(*module, {.names = false}) == ir::print(*ir::parse(expected), {.names = false}));
}

/// As staged, in continuation-passing style.
template <class F>
auto staged(F f) {
  std::vector<ir::Type> types;
  detail::types_of<typename detail::FunctionTraits<F>::Params>(types);
  return driver::stage("f", types, detail::program_of(f).run);
}

std::string gradient_of(auto f) {
  return compile(grad(f), {.target = Target::automatic, .name = "g"}).source("cpp");
}

}  // namespace

TEST_CASE("canonical_loops: sizes and sums of what the loop does not change", "[passes]") {
  check(R"(entry @f
fun @f(%a: f64[?], %n: i64) -> i64 {
  %zero = constant 0 : i64
  %i = loop %zero : i64 while (%i: i64) {
    %size = dim[0] %a : i64
    %one = constant 1 : i64
    %m = sub %size, %one : i64
    %half = add %m, %n : i64
    %twice = add %i, %n : i64
    %c = lt %twice, %half : bool
    yield %c
  } do (%i: i64) {
    %one = constant 1 : i64
    %j = add %i, %one : i64
    yield %j
  }
  yield %i
})",
        R"(entry @f
fun @f(%a: f64[?], %n: i64) -> i64 {
  %zero = constant 0 : i64
  %size = dim[0] %a : i64
  %unit = constant 1 : i64
  %m = sub %size, %unit : i64
  %half = add %m, %n : i64
  %end = imax %half, %n : i64
  %bound = sub %end, %n : i64
  %i = loop %zero : i64 while (%i: i64) {
    %one = constant 1 : i64
    %twice = add %i, %n : i64
    %c = lt %i, %bound : bool
    yield %c
  } do (%i: i64) {
    %one = constant 1 : i64
    %j = add %i, %one : i64
    yield %j
  }
  yield %i
})");
}

TEST_CASE("canonical_loops: what is staged is so already, its derivative too", "[passes]") {
  const auto last = [](A a) {
    const auto [i, sum] = WHILE(
        std::tuple(a.size() - 1, D(0.0)), [&](I at, D) { return at >= a.size() / 2; },
        [&](I at, D s) { return std::tuple(at - 1, s + a[at] * a[at]); });
    return sum;
  };
  const auto module = staged(grad(last));
  const auto head = [&] {
    const std::string text = ir::print(*module, {.names = false});
    const std::size_t start = text.find("= fun (");
    return text.substr(start, text.find("branch", start) - start);
  };
  ir::verify(*module);
  CHECK_THAT(head(), !Contains("dim[0]") && !Contains("div") && Contains("lt"));
}

TEST_CASE("canonical_loops: a while loop that asks for the size each time is differentiated like FOR") {
  const auto by_while = [](A a) {
    const auto [i, sum] = WHILE(
        std::tuple(I(0), D(0.0)), [&](I at, D) { return at < a.size(); },
        [&](I at, D s) { return std::tuple(at + 1, s + sin(a[at])); });
    return sum;
  };
  const auto by_for = [](A a) { return FOR(0, a.size(), 0.0, [&](I i, D s) { return s + sin(a[i]); }); };
  for (const std::string& text : {gradient_of(by_while), gradient_of(by_for)})
    CHECK_THAT(text, !Contains("lt_require_tapes") && Contains("lt_cos_f64x"));
  const std::vector<double> a{0.5, 1.0, -2.0};
  CHECK(compile(grad(by_while))(a) == compile(grad(by_for))(a));
}

TEST_CASE("sums and own elements inside branches do not make iterations depend on each other") {
  const auto losses = [](A z, A label) {
    return FOR(0, z.size(), 0.0, [&](I i, D sum) {
      return IF(
          label[i] > 0.5, [&] { return sum + log(1.0 + exp(-z[i])); },
          [&] {
            return IF(
                label[i] > 0.0, [&] { return sum; }, [&] { return sum - z[i] * z[i]; });
          });
    });
  };
  const auto positive = [](A z) {
    const A kept = FOR(0, z.size(), fill(D(0.0), z.size()), [&](I i, A all) {
      return IF(
          z[i] > 0.0, [&] { return all.set(i, exp(z[i])); }, [&] { return all; });
    });
    return FOR(0, z.size(), 0.0, [&](I i, D s) { return s + kept[i] * kept[i]; });
  };
  CHECK_THAT(compile(grad<0>(losses), {.name = "g"}).source("cpp"), !Contains("lt_require_tapes"));
  CHECK_THAT(gradient_of(positive), !Contains("lt_require_tapes"));
  std::vector<double> z, label, expected;
  for (int i = 0; i < 23; ++i) {
    z.push_back(0.3 * i - 2.0), label.push_back(i % 3 * 0.4);
    const double x = z.back();
    expected.push_back(label.back() > 0.5 ? -1 / (1 + std::exp(x)) : label.back() > 0.0 ? 0.0 : -2 * x);
  }
  for (const int opt : {0, 1, 3}) {
    const auto slope = compile(grad<0>(losses), {.opt = opt})(z, label);
    const auto kept = compile(grad(positive), {.opt = opt})(z);
    for (std::size_t i = 0; i < z.size(); ++i) {
      CHECK(slope[i] == Approx(expected[i]));
      CHECK(kept[i] == Approx(z[i] > 0 ? 2 * std::exp(2 * z[i]) : 0.0));
    }
  }
}

TEST_CASE("state that a branch replaces is not only added to") {
  const auto last = [](A z) {
    return FOR(0, z.size(), 1.0, [&](I i, D s) {
      return IF(
          z[i] > 0.0, [&] { return s + z[i]; }, [&] { return z[i] * 2.0; });
    });
  };
  const auto mixed = [](A z) {
    const auto [a, b] = FOR(0, z.size(), std::tuple(D(0.0), D(0.0)), [&](I i, D x, D y) {
      return IF(
          z[i] > 0.0, [&] { return std::tuple(x + z[i], y); }, [&] { return std::tuple(y, x + z[i]); });
    });
    return a * b;
  };
  const std::vector<double> z{1.0, -2.0, 0.5, 3.0, -0.25, 2.0};
  for (const int opt : {0, 3}) {
    CHECK(compile(grad(last), {.opt = opt})(z) == eager(grad(last))(z));
    CHECK(compile(grad(mixed), {.opt = opt})(z) == eager(grad(mixed))(z));
  }
}

TEST_CASE("iterations that set each other's elements depend on each other") {
  using M = Rep<Tensor<double, dyn, dyn>>;
  const auto mirrored = [](A x) {
    const I n = x.size();
    const M both = FOR(0, n, fill(D(0.0), n, n), [&](I i, M rows) {
      return FOR(0, n, rows,
                 [&](I j, M m) { return m.set(i, j, x[i] * x[j] * x[j]).set(j, i, x[i] + 2.0 * x[j]); });
    });
    return FOR(0, n, 0.0, [&](I i, D sum) {
      return FOR(0, n, sum, [&](I j, D s) { return s + both(i, j) * cast<double>(3 * i + 5 * j + 1); });
    });
  };
  const auto next = [](A x) {
    const I n = x.size();
    const A shifted = FOR(0, n - 1, fill(D(0.0), n),
                          [&](I i, A a) { return a.set(i, x[i] * x[i]).set(i + 1, x[i] * 3.0); });
    return FOR(0, n, 0.0, [&](I i, D s) { return s + shifted[i] * x[i]; });
  };
  const std::vector<double> x{1.0, -2.0, 0.5, 3.0, -0.25, 2.0, 7.0, 0.125, -1.0};
  for (const int opt : {0, 1, 3}) {
    CHECK(compile(grad(mirrored), {.opt = opt})(x) == eager(grad(mirrored))(x));
    CHECK(compile(grad(next), {.opt = opt})(x) == eager(grad(next))(x));
  }
}

TEST_CASE("loops that count down, up to and including, or by a step") {
  const auto horner = [](A a, D x) {
    const auto [i, y] = WHILE(
        std::tuple(a.size() - 1, D(0.0)), [](I at, D) { return at >= 0; },
        [&](I at, D sum) { return std::tuple(at - 1, sum * x + a[at]); });
    return y;
  };
  const auto filled = [](A a, D) {
    const auto [i, b] = WHILE(
        std::tuple(a.size(), fill(D(0.0), a.size())), [](I at, A) { return 0 < at; },
        [&](I at, A all) { return std::tuple(at - 1, all.set(at - 1, sin(a[at - 1]))); });
    return FOR(0, a.size(), 0.0, [&](I k, D s) { return s + b[k] * b[k]; });
  };
  const auto inclusive = [](A a, D x) {
    const auto [i, s] = WHILE(
        std::tuple(I(1), D(0.0)), [&](I at, D) { return at <= a.size(); },
        [&](I at, D sum) { return std::tuple(at + 1, sum + a[at - 1] * a[at - 1] * x); });
    return s + cast<double>(i);
  };
  const auto strided = [](A a, D x) {
    const auto [i, s] = WHILE(
        std::tuple(I(0), D(0.0)), [&](I at, D) { return at < a.size(); },
        [&](I at, D sum) { return std::tuple(at + 3, sum * x + a[at] * a[at]); });
    return s * cast<double>(i);
  };
  const auto pairs = [](A a, D x) {
    const auto [i, s] = WHILE(
        std::tuple(a.size() - 1, D(0.0)), [](I at, D) { return 0 < at; },
        [&](I at, D sum) { return std::tuple(at - 2, sum + sin(a[at] * a[at - 1]) * x); });
    return s + cast<double>(i);
  };
  const auto check_all = [](const auto& f) {
    for (std::size_t n : {0, 1, 2, 3, 7, 40}) {
      std::vector<double> a;
      for (std::size_t i = 0; i < n; ++i) a.push_back(0.1 * static_cast<double>(i) - 0.7);
      const auto expected = eager(grad<0>(f))(a, 0.9);
      for (const int opt : {0, 1, 3}) {
        const auto got = compile(grad<0>(f), {.opt = opt})(a, 0.9);
        REQUIRE(got.size() == n);
        for (std::size_t i = 0; i < n; ++i) CHECK(got[i] == Approx(expected[i]));
      }
    }
  };
  check_all(horner);
  check_all(filled);
  check_all(inclusive);
  check_all(strided);
  check_all(pairs);
  CHECK_THAT(compile(grad<0>(horner), {.name = "g"}).source("cpp"), !Contains("lt_require_tapes"));
  CHECK_THAT(compile(grad<0>(filled), {.name = "g"}).source("cpp"), !Contains("lt_require_tapes"));
  CHECK_THAT(compile(grad<0>(inclusive), {.name = "g"}).source("cpp"), !Contains("lt_require_tapes"));
  CHECK_THAT(compile(grad<0>(pairs), {.name = "g"}).source("cpp"), !Contains("lt_require_tapes"));
}

TEST_CASE("loops whose condition adds to what they count") {
  // How often they run, what they count to, and that they count: with bounds at the ends of all integers.
  const auto check = [](auto goes_on, std::int64_t by) {
    const auto f = [=](I first, I end, I k) {
      const auto [i, n] = WHILE(
          std::tuple(first, I(0)), [&](I at, I) { return goes_on(at, end, k); },
          [&](I at, I iterations) { return std::tuple(at + by, iterations + at); });
      return std::tuple(i, n);
    };
    const auto plain = eager(f);
    const auto staged = compile(f, {.target = Target::c, .opt = 3}), raw = compile(f, {.opt = 0});
    constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                           high = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t first : {-3, 0, 1, 5})
      for (const std::int64_t end : {low, low + 1, std::int64_t{-4}, std::int64_t{0}, std::int64_t{1},
                                     std::int64_t{7}, high - 1, high})
        for (const std::int64_t k : {-2, 0, 1, 3}) {
          // Those that would take for ever.
          if (by > 0 ? end > 100 : end < -100) continue;
          CAPTURE(first, end, k, by);
          CHECK(staged(first, end, k) == plain(first, end, k));
          CHECK(raw(first, end, k) == plain(first, end, k));
        }
  };
  check([](I i, I end, I) { return i + 1 < end; }, 1);
  check([](I i, I end, I) { return i + 1 <= end; }, 1);
  check([](I i, I end, I) { return end > i - 2; }, 1);
  check([](I i, I end, I k) { return i + k < end; }, 1);
  check([](I i, I end, I k) { return k + i <= end; }, 2);
  check([](I i, I end, I k) { return i - k < end; }, 1);
  check([](I i, I end, I) { return i - 1 > end; }, -1);
  check([](I i, I end, I) { return i - 1 >= end; }, -1);
  check([](I i, I end, I k) { return i + k > end; }, -2);

  // A gradient keeps no more than that of a loop that says so itself.
  const auto differences = [](A a, I lag) {
    const auto [i, s] = WHILE(
        std::tuple(I(0), D(0.0)), [&](I at, D) { return at + lag < a.size(); },
        [&](I at, D sum) { return std::tuple(at + 1, sum + sin(a[at] * a[at + lag])); });
    return s;
  };
  CHECK_THAT(compile(grad<0>(differences), {.name = "g"}).source("cpp"), !Contains("lt_require_tapes"));
  const std::vector<double> a{0.5, -0.2, 0.7, 1.1, 0.3};
  for (const std::int64_t lag : {0, 1, 4, 5, 9}) {
    const std::vector<double> got = compile(grad<0>(differences))(a, lag),
                              expected = eager(grad<0>(differences))(a, lag);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(got[i] == Approx(expected[i]));
  }
}
