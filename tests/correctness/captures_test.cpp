// What a FUN captured may have changed between two calls: each call means what the body means then.
#include <array>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "../occurrences.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;

using lantern::test::count;

/// Value and slope at 1.5, eagerly and compiled; the number of functions staged for it, the entry included.
template <class F>
std::size_t functions_of(const F& f) {
  const auto both = value_and_grad(sig<double(double)>(f));
  const auto [value, slope] = eager(both)(1.5);
  for (const int opt : {0, 3}) {
    const auto [v, s] = compile(both, {.target = Target::c, .opt = opt})(1.5);
    CHECK(v == Approx(value));
    CHECK(s == Approx(slope));
  }
  return count(compile(sig<double(double)>(f), {.target = Target::c, .opt = 0}).source("ir"), "\nfun @");
}

auto power(int& n, int& runs) {
  return FUN<double(double, std::int64_t)>("power", [&](auto self, D x, I k) {
    ++runs;
    return IF(
        k == 0, [&] { return D(n); }, [&] { return x * self(x, k - 1); });
  });
}

}  // namespace

TEST_CASE("a plain variable, captured by reference, changes between calls", "[fun]") {
  CHECK(functions_of([](D x) {
          int n = 1, runs = 0;
          const auto f = power(n, runs);
          D y = f(x, 3);
          n = 2;
          y = y + f(x, 3);
          n = 1;
          return y + f(x, 2);
        }) == 3);
}

TEST_CASE("a staged variable, captured by reference, changes between calls", "[fun]") {
  CHECK(functions_of([](D x) {
          D w = x;
          const auto f = FUN<double(double)>("f", [&](D y) { return y * w; });
          D total = f(2.0);
          w = w * w;
          total = total + f(2.0) + f(x);
          w = 3.0;
          return total + f(x);
        }) == 4);
}

TEST_CASE("calls of one meaning share a function", "[fun]") {
  CHECK(functions_of([](D x) {
          int n = 1, runs = 0;
          const auto f = power(n, runs);
          return f(x, 3) + f(x * x, 2) + f(f(x, 1), 1);
        }) == 2);
  // What captures nothing is staged once.
  int runs = 0;
  static int* counter;
  counter = &runs;
  const auto f = FUN<double(double)>("f", [](D y) { return ++*counter, y * y; });
  compile(sig<double(double)>([&](D x) { return f(f(f(x))); }), {.target = Target::c});
  CHECK(runs == 1);
}

TEST_CASE("functions that call each other change together", "[fun]") {
  CHECK(functions_of([](D x) {
          double step = 1.0;
          Fun<double(double, std::int64_t)> odd("odd");
          const auto even = FUN<double(double, std::int64_t)>("even", [&](D y, I n) {
            return IF(
                n == 0, [&] { return y; }, [&] { return odd(y * y, n - 1); });
          });
          odd.define([&](D y, I n) {
            return IF(
                n == 0, [&] { return 2.0 * y; }, [&] { return even(y + step, n - 1); });
          });
          D total = even(x, 3) + even(x, 2) + odd(x, 3);
          step = 2.0;
          return total + even(x, 3);
        }) >= 5);
}

TEST_CASE("a function inside a function, and one that takes a derivative", "[fun]") {
  functions_of([](D x) {
    double c = 1.0;
    const auto outer = FUN<double(double)>("outer", [&](D a) {
      D w = a;
      const auto inner = FUN<double(double)>("inner", [&](D b) { return b * w * c; });
      const D first = inner(a);
      w = w + 1.0;
      return first + inner(x) + grad(inner)(a);
    });
    const D y = outer(x) + outer(2.0 * x);
    c = 0.5;
    return y + outer(x);
  });
}

TEST_CASE("a value that leaks from one thread's graph into another's is refused", "[threads]") {
  // Both threads stage their first graph.
  std::optional<D> leaked;
  std::thread([&leaked] {
    compile(sig<double(double)>([&leaked](D x) { return leaked.emplace(x * 2.0); }), {.target = Target::c});
  }).join();
  std::string message;
  std::thread([&leaked, &message] {
    try {
      compile(sig<double(double)>([&leaked](D x) { return x + *leaked; }), {.target = Target::c});
    } catch (const Error& e) {
      message = e.what();
    }
  }).join();
  CHECK_THAT(message, Catch::Contains("a staged value is used after the function it belongs to has ended"));
}

TEST_CASE("functions defined by different threads do not share their graphs", "[threads][fun]") {
  std::array<std::optional<Fun<double(double)>>, 2> made;
  for (std::size_t i = 0; i < 2; ++i)
    std::thread([&made, i] {
      made[i] = i == 0 ? FUN<double(double)>("f", [](D x) { return x * x; })
                       : FUN<double(double)>("f", [](D x) { return x + 1.0; });
    }).join();
  const auto both = sig<double(double)>([&](D x) { return (*made[0])(x) + (*made[1])(x); });
  CHECK(compile(both, {.target = Target::c})(3.0) == 13.0);
  CHECK(eager(both)(3.0) == 13.0);
}
