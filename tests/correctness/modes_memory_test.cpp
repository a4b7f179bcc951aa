// Modes that remember little: checkpoints without annotations, and functions that are run again.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using Function = std::function<D(D)>;

/// The largest resident size, in kilobytes, of a child process that runs `work`.
template <class Work>
long peak_of(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  rusage usage{};
  REQUIRE(wait4(child, &status, 0, &usage) == child);
  REQUIRE(WIFEXITED(status));
  return usage.ru_maxrss;
}

/// 2 n operations, none of them linear.
Function sines(int n) {
  return [n](D x) {
    D t = x;
    for (int i = 0; i < n; ++i) t = sin(t) * x;
    return t;
  };
}

D loop(D x, I n) {
  return FOR(0, n, x, [&](I, D t) { return sin(t) * x; });
}

}  // namespace

TEST_CASE("divide and conquer computes again what it forgot", "[modes]") {
  for (const int n : {1, 3, 50, 100, 1000, 3000}) {
    INFO(n);
    CHECK(eager(grad<mode::divide_and_conquer>(sines(n)))(1.3) ==
          Approx(eager(grad(sines(n)))(1.3)).epsilon(1e-12));
  }
  int runs = 0;
  const Function counted = [&runs](D x) {
    ++runs;
    return sines(2000)(x);
  };
  eager(grad<mode::divide_and_conquer>(counted))(1.3);
  // 4000 operations, of which a part may have 16 log2(4000): 32 parts of 125, and the run that measures.
  CHECK(runs == 33);
  const auto [y, dy] = eager(value_and_grad<mode::divide_and_conquer>(sines(500)))(1.3);
  CHECK(y == eager(sines(500))(1.3));
  CHECK(dy == Approx(eager(grad(sines(500)))(1.3)));
}

TEST_CASE("divide and conquer remembers a part of the program", "[modes]") {
  const auto kept = [](int n, bool all) {
    return peak_of([&] {
      if (all)
        eager(grad<mode::global_tape>(sines(n)))(1.3);
      else
        eager(grad<mode::divide_and_conquer>(sines(n)))(1.3);
    });
  };
  const long nothing = kept(1, false);
  const long small = kept(2'000, false) - nothing, large = kept(20'000, false) - nothing;
  const long all = kept(20'000, true) - nothing;
  INFO("kB above a program of two operations: 4000 operations " << small << ", 40000 " << large
                                                                << "; all remembered " << all);
  CHECK(all > 4000);
  CHECK(large < all / 8);
  CHECK(large < small + 1000);  // ten times the operations, a megabyte at most
}

TEST_CASE("programs that differ from run to run are refused", "[modes]") {
  int calls = 0;
  const Function counting = [&calls](D x) { return sin(x) * static_cast<double>(++calls); };
  CHECK_THROWS_WITH(
      eager(grad<mode::divide_and_conquer>(counting))(1.0),
      Catch::Contains("grad<mode::divide_and_conquer>: expected a program that does the same each time "
                      "it is run, got other operations or numbers the second time"));
  int runs = 0;
  const Function longer = [&runs](D x) { return sines(++runs)(x); };
  CHECK_THROWS_WITH(eager(grad<mode::divide_and_conquer>(longer))(1.0),
                    Catch::Contains("does the same each time"));
  int shrinking = 2000;
  const Function shorter = [&shrinking](D x) { return sines(shrinking /= 2)(x); };
  CHECK_THROWS_WITH(eager(grad<mode::divide_and_conquer>(shorter))(1.0),
                    Catch::Contains("does the same each time"));
}

TEST_CASE("divide and conquer, staged: loops keep states, not a tape", "[modes]") {
  const auto divided = compile(grad<mode::divide_and_conquer>(&loop));
  const auto taped = compile(grad<mode::taped>(&loop));
  const auto held = [](const auto& f, std::int64_t n) {
    std::pair<double, std::int64_t> result;
    std::thread([&] { result = {f(1.3, n), driver::workspace_bytes()}; }).join();
    return result;
  };
  const auto [a, small] = held(divided, 10'000);
  const auto [b, large] = held(divided, 1'000'000);
  const auto [c, all] = held(taped, 1'000'000);
  CHECK(b == Approx(c).epsilon(1e-9));
  INFO("bytes: 10^4 iterations " << small << ", 10^6 " << large << ", taped " << all);
  CHECK(all >= 8'000'000);
  CHECK(large < 100'000);
  CHECK(large <= 2 * small);
}

namespace {

/// What f(x, n) gives, and the bytes that a thread of its own then holds for tapes.
template <class F>
std::pair<double, std::int64_t> held(const F& f, std::int64_t n) {
  std::pair<double, std::int64_t> result;
  std::thread([&] { result = {f(0.8, n), driver::workspace_bytes()}; }).join();
  return result;
}

/// 2^n leaves.
D branching(D x, I n) {
  const auto walk = FUN<double(double, std::int64_t)>("walk", [x](auto self, D t, I k) {
    return IF(
        k == 0, [&] { return sin(t * x); },
        [&] { return sin(self(t * 0.7, k - 1)) * self(t * 0.9, k - 1) + t; });
  });
  return walk(x, n);
}

D chain(D x, I n) {
  const auto walk = FUN<double(double, std::int64_t)>("walk", [](auto self, D t, I k) {
    return IF(
        k == 0, [&] { return t; }, [&] { return sin(self(t * 0.9999, k - 1)) + t; });
  });
  return walk(x, n);
}

}  // namespace

TEST_CASE("divide and conquer, staged: a recursion that branches keeps as much as it is deep", "[modes]") {
  const auto divided = compile(grad<0, mode::divide_and_conquer>(&branching));
  const auto taped = compile(grad<0, mode::taped>(&branching));
  const auto [a, small] = held(divided, 8);
  const auto [b, large] = held(divided, 16);
  const auto [c, all] = held(taped, 16);
  CHECK(b == Approx(c).epsilon(1e-9));
  CHECK(a == Approx(held(taped, 8).first).epsilon(1e-9));
  INFO("bytes: 2^8 leaves " << small << ", 2^16 " << large << ", taped " << all);
  CHECK(all >= 65536 * 8);
  CHECK(large < 100'000);
  CHECK(large <= 2 * small);
  // A second derivative of it.
  const auto second =
      compile(grad<0, mode::divide_and_conquer>(grad<0, mode::divide_and_conquer>(&branching)));
  CHECK(second(0.8, 6) == Approx(eager(grad<0>(grad<0>(&branching)))(0.8, 6)).epsilon(1e-9));
  // One call at a time: not run again at every depth, which would be quadratic.
  const auto deep = compile(grad<0, mode::divide_and_conquer>(&chain));
  CHECK(deep(0.8, 50'000) == Approx(compile(grad<0, mode::taped>(&chain))(0.8, 50'000)).epsilon(1e-9));
}

TEST_CASE("a bound on a loop's memory is kept by every staged mode", "[modes]") {
  const auto bounded = [](D x, I n) {
    return FOR(0, n, x, [&](I, D t) { return sin(t) * x; }, {.checkpoints = 20});
  };
  const auto test = [&](const char* name, const auto& f) {
    INFO(name);
    const auto compiled = compile(f);
    const auto [a, small] = held(compiled, 1'000);
    const auto [b, large] = held(compiled, 100'000);
    INFO("bytes: 10^3 iterations " << small << ", 10^5 " << large);
    CHECK(b == Approx(compile(grad<0>(bounded))(0.8, 100'000)).epsilon(1e-9));
    CHECK(large < 100'000);
  };
  test("cps", grad<0, mode::cps>(bounded));
  test("global tape", grad<0, mode::global_tape>(bounded));
  test("functional", grad<0, mode::functional>(bounded));
  test("continuation", grad<0, mode::continuation>(bounded));
  test("taped", grad<0, mode::taped>(bounded));
  test("checkpointed", grad<0, mode::checkpointed>(bounded));
  test("divide and conquer", grad<0, mode::divide_and_conquer>(bounded));
}

TEST_CASE("functions with a reverse pass of their own", "[modes]") {
  // map f (map g xs) for two numbers, with functions as values.
  const auto program = [](D x) {
    const D factor = x * x;
    const auto f = closure(sig<double(double)>([factor](D t) { return sin(t) * factor; }));
    const auto g = closure(sig<double(double, double)>([f](D t, D u) { return f(f(t) * u) + u; }));
    const std::function<D(D, std::function<D(D)>)> twice = [](D t, const std::function<D(D)>& h) {
      return h(h(t));
    };
    return twice(x, [g, x](D t) { return g(t, x); }) * f(x);
  };
  const double slope = eager(grad(program))(0.8);
  CHECK(slope == Approx((eager(program)(0.8 + 1e-5) - eager(program)(0.8 - 1e-5)) / 2e-5).epsilon(1e-8));
  CHECK(eager(grad<mode::closures>(program))(0.8) == Approx(slope));
  CHECK(eager(grad<mode::checkpointed_closures>(program))(0.8) == Approx(slope));
  CHECK(compile(grad(program), {.target = Target::c})(0.8) == Approx(slope));
  const double second = eager(grad(grad(program)))(0.8);
  CHECK(eager(grad<mode::closures>(Function(grad<mode::closures>(program))))(0.8) == Approx(second));
  CHECK(eager(grad<mode::checkpointed_closures>(Function(grad<mode::closures>(program))))(0.8) ==
        Approx(second));
  CHECK(eager(grad<mode::closures>(Function(grad<mode::checkpointed_closures>(program))))(0.8) ==
        Approx(second));
}

TEST_CASE("a known function is run twice by mode::checkpointed_closures, and remembered by other modes",
          "[modes]") {
  int runs = 0;
  const auto f = closure(sig<double(double)>([&runs](D t) {
    ++runs;
    return sin(t) * t;
  }));
  const Function program = [&](D x) { return f(f(x)); };
  const double slope = eager(grad(program))(0.8);
  runs = 0;
  CHECK(eager(grad<mode::closures>(program))(0.8) == Approx(slope));
  CHECK(runs == 2);
  runs = 0;
  CHECK(eager(grad<mode::checkpointed>(program))(0.8) == Approx(slope));
  CHECK(runs == 2);
  runs = 0;
  CHECK(eager(grad<mode::checkpointed_closures>(program))(0.8) == Approx(slope));
  CHECK(runs == 4);
}

TEST_CASE("known functions are lifted through several levels", "[modes]") {
  // Thesis, 4.5 and listing 4.10, each function known: d/dx (x d/dy (y d/dz (z (y x)))) at 1 is 4.
  const auto d = [](const Function& f, double at) { return D(grad<mode::closures>(f)(at)); };
  const Function three = [&](D x) {
    const auto outer = closure(sig<double(double)>([&, x](D y) {
      const auto inner = closure(sig<double(double)>([x, y](D z) { return z * (y * x); }));
      return y * d([inner](D z) { return inner(z); }, 1.0);
    }));
    return x * d([outer](D y) { return outer(y); }, 1.0);
  };
  CHECK(eager(grad<mode::closures>(three))(1.0) == 4.0);
  CHECK(eager(grad<mode::forward>(three))(1.0) == 4.0);
  CHECK(eager(grad(three))(1.0) == 4.0);
}

namespace {

/// Kilobytes that an eager program of one number takes at most, above one of two operations.
template <class Gradient>
double kept(const Gradient& gradient, const Function& f) {
  long nothing = std::numeric_limits<long>::max();  // a process takes some pages more now and then
  for (int i = 0; i < 3; ++i) nothing = std::min(nothing, peak_of([&] { eager(gradient(sines(1)))(0.5); }));
  return static_cast<double>(peak_of([&] { eager(gradient(f))(0.5); }) - nothing);
}

}  // namespace

TEST_CASE("what each mode keeps grows as its order says", "[modes]") {
  // 2 n operations. A mode that keeps them all has so many bytes for each; one that keeps none, a megabyte in
  // all.
  const auto linear = [](const char* name, auto gradient, double most_bytes) {
    const double small = kept(gradient, sines(80'000)), large = kept(gradient, sines(320'000));
    const double bytes = 1024 * large / 640'000;
    INFO(name << ", kB: " << small << ", " << large << "; " << bytes << " bytes for an operation");
    CHECK(large > 3 * small);
    CHECK(large < 7 * small);  // four times as many operations
    CHECK(bytes < most_bytes);
  };
  const auto constant = [](const char* name, auto gradient) {
    const double small = kept(gradient, sines(20'000)), large = kept(gradient, sines(200'000));
    INFO(name << ", kB: " << small << ", " << large);
    CHECK(large < 1024);
  };
  // The fast paths.
  linear(
      "reverse", [](const Function& f) { return grad<mode::reverse, form::fast>(f); }, 300);
  linear(
      "taped", [](const Function& f) { return grad<mode::taped, form::fast>(f); }, 200);
  constant("forward", [](const Function& f) { return grad<mode::forward, form::fast>(f); });
  // The rules. Continuations, and what waits for them to return, stand on the stack.
  linear(
      "reverse by shift", [](const Function& f) { return grad<mode::reverse, form::literal>(f); }, 2048);
  linear(
      "functional", [](const Function& f) { return grad<mode::functional>(f); }, 2048);
  linear(
      "checkpointed, nothing marked", [](const Function& f) { return grad<mode::checkpointed>(f); }, 2048);
  linear(
      "closures", [](const Function& f) { return grad<mode::closures>(f); }, 2560);
  linear(
      "global tape", [](const Function& f) { return grad<mode::global_tape>(f); }, 1024);
  linear(
      "taped by a handler", [](const Function& f) { return grad<mode::taped, form::literal>(f); }, 1024);
  constant("forward by a handler", [](const Function& f) { return grad<mode::forward, form::literal>(f); });
}

TEST_CASE("a program in n checkpointed parts of n steps keeps as much as n of them", "[modes]") {
  const auto parts = [](int n) -> Function {
    return [n, part = sines(n)](D x) {
      D t = x;
      for (int i = 0; i < n; ++i) t = checkpoint(part)(t);
      return t;
    };
  };
  const auto grows = [&](const char* name, auto gradient) {
    const double small = kept(gradient, parts(200)), large = kept(gradient, parts(800));
    INFO(name << ", kB: 200 parts " << small << ", 800 parts " << large);
    CHECK(large < 6 * std::max(small, 200.0));
    CHECK(large * 1024 < 4096.0 * (800 + 2 * 800));  // a part, and twice so many operations as it has steps
  };
  grows("literal", [](const Function& f) { return grad<mode::checkpointed>(f); });
  grows("fast", [](const Function& f) { return grad(f); });
}

// The last one, because memory that a derivative took is kept for the next: the parent of the children that
// are measured has run small programs until now.
TEST_CASE("checkpoints save memory", "[modes]") {
  constexpr int segments = 250, steps = 250;
  const Function segment = [](D x) {
    return FOR(0, steps, x, [](I, D t) { return t * 0.999 + sin(t) * 0.001; });
  };
  const Function whole = [segment](D x) {
    D t = x;
    for (int i = 0; i < segments; ++i) t = segment(t);
    return t;
  };
  const Function parts = [segment](D x) {
    D t = x;
    for (int i = 0; i < segments; ++i) t = checkpoint(segment)(t);
    return t;
  };
  const long remembered = peak_of([&] { eager(grad(whole))(0.5); });
  const long run_again = peak_of([&] { eager(grad<mode::checkpointed>(parts))(0.5); });
  const long nothing = peak_of([] {});
  INFO("kB: all remembered " << remembered << ", checkpoints " << run_again << ", nothing " << nothing);
  CHECK(remembered - nothing > 10'000);
  CHECK(run_again - nothing < (remembered - nothing) / 4);
  CHECK(eager(grad<mode::checkpointed>(parts))(0.5) == eager(grad(whole))(0.5));
}
