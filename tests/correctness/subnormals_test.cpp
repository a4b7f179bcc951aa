// Subnormal numbers: zero in loops, kept with strict_math and by eager evaluation; the processor's mode is as
// it was after every call, however it ends.
#include "lantern/runtime/subnormals.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using Vec = Rep<Array<double>>;

/// x / 2^n: for x = 1 subnormal from n = 1023 on, zero from 1075 on.
D halved(D x, I n) {
  return FOR(0, n, x, [](I, D y) { return y * 0.5; });
}
Vec scaled(Vec a, D s) {
  return FOR(0, a.size(), fill(D(0.0), a.size()), [&](I i, Vec y) { return y.set(i, a[i] * s); });
}
D straight(D x) { return x * 0.5; }
auto halved_by_calls = FUN<double(double, std::int64_t)>("halved_by_calls", [](auto self, D x, I n) {
  return IF(
      n == 0, [&] { return x; }, [&] { return self(x * 0.5, n - 1); });
});

constexpr double smallest = 0x1p-1074, subnormal = 0x1p-1060;
constexpr bool can_flush = FlushSubnormals::flush != 0;
/// What a loop makes of a subnormal number.
constexpr double flushed(double x) { return can_flush ? 0.0 : x; }

std::vector<CompileOptions> ways() {
  std::vector<CompileOptions> all;
  for (const int opt : {0, 1, 3}) all.push_back({.target = Target::c, .opt = opt});
  for (const int opt : {0, 1}) all.push_back({.target = Target::cpp, .opt = opt});
  for (const int lanes : {2, 4, 8}) all.push_back({.target = Target::cpp, .opt = 3, .lanes = lanes});
  return all;
}

CompileOptions strict(CompileOptions options) {
  options.strict_math = true;
  return options;
}

/// The mode of this thread, after a call that is to leave it alone.
template <class F>
void leaves_mode(F call) {
  const auto before = FlushSubnormals::read() & FlushSubnormals::flush;
  call();
  CHECK((FlushSubnormals::read() & FlushSubnormals::flush) == before);
}

}  // namespace

TEST_CASE("loops take subnormal numbers for zero, unless they are strict", "[subnormals]") {
  for (const CompileOptions& options : ways()) {
    INFO("opt " << options.opt << ", lanes " << options.lanes);
    const auto both = [](D x, I n, Vec a) {
      return std::tuple(halved(x, n), halved_by_calls(x, n), scaled(a, x));
    };
    std::vector<double> a(37, subnormal);
    a[36] = 1.0;
    const auto check = [&](const CompileOptions& o, double expected) {
      const auto f = compile(both, o);
      leaves_mode([&] {
        const auto [y, z, v] = f(1.0, 1060, a);
        CHECK(y == expected);
        CHECK(z == expected);
        CHECK(std::count(v.begin(), v.end(), expected) == 36);
        CHECK(v[36] == 1.0);
      });
    };
    check(options, flushed(subnormal));
    check(strict(options), subnormal);
  }
  CHECK(eager(halved)(1.0, 1060) == subnormal);
}

TEST_CASE("derivatives take subnormal numbers for zero as values do", "[subnormals]") {
  const CompileOptions options{.target = Target::cpp};
  CHECK(compile(grad<0>(halved), options)(1.0, 1060) == flushed(subnormal));
  CHECK(compile(grad<0>(halved), strict(options))(1.0, 1060) == subnormal);
}

TEST_CASE("code without loops keeps subnormal numbers", "[subnormals]") {
  for (const CompileOptions& options : ways()) CHECK(compile(straight, options)(2 * smallest) == smallest);
}

TEST_CASE("both tiers take subnormal numbers for zero", "[subnormals]") {
  const auto f = compile(halved);
  CHECK(f(1.0, 1060) == flushed(subnormal));
  f.wait();
  CHECK(f(1.0, 1060) == flushed(subnormal));
}

TEST_CASE("the caller's mode is as it was, after errors too", "[subnormals]") {
  const auto beyond = sig<double(Array<double>, std::int64_t)>(
      [](Vec a, I n) { return FOR(0, n, D(0.0), [&](I i, D sum) { return sum + a[i]; }); });
  for (const CompileOptions& options : ways()) {
    const auto f = compile(beyond, options);
    const std::vector<double> a(5, 1.0);
    for (const bool own : {false, true}) {
      const FlushSubnormals mode(own);
      leaves_mode([&] { CHECK(f(a, 5) == 5.0); });
      leaves_mode([&] { CHECK_THROWS_AS(f(a, 6), Error); });
    }
    leaves_mode([&] { CHECK(f(a, 5) == 5.0); });
  }
}

TEST_CASE("threads take subnormal numbers for zero, for the one call", "[subnormals]") {
  // Enough to do for a loop to be shared out.
  const auto many = sig<Array<double>(Array<double>, double, std::int64_t)>([](Vec a, D s, I last) {
    return FOR(0, a.size(), fill(D(0.0), a.size()), [&](I i, Vec y) {
      const D v = FOR(0, 40, a[i], [&](I, D x) { return x * s; });
      return y.set(IF(
                       i < last, [&] { return i; }, [&] { return i + last; }),
                   v);
    });
  });
  constexpr std::size_t n = 1 << 18;
  const std::vector<double> a(n, subnormal);
  for (const Target target : {Target::c, Target::cpp}) {
    const CompileOptions options{.target = target, .threads = 3};
    const auto flushing = compile(many, options), keeping = compile(many, strict(options));
    const auto all = [&](const auto& f, double expected) {
      leaves_mode([&] {
        const std::vector<double> y = f(a, 1.0, static_cast<std::int64_t>(n));
        CHECK(static_cast<std::size_t>(std::count(y.begin(), y.end(), expected)) == n);
      });
    };
    for (int round = 0; round < 2; ++round) {
      all(flushing, flushed(subnormal));
      leaves_mode([&] { CHECK_THROWS_AS(flushing(a, 1.0, static_cast<std::int64_t>(n) - 1), Error); });
      all(keeping, subnormal);
    }
  }
}
