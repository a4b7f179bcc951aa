// Functions that call functions: each is staged once, and differentiated once for what is active in it.
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "lantern/compiler/passes/direct/unwind.hpp"
#include "lantern/compiler/passes/pipeline.hpp"
#include "lantern/lantern.hpp"

using namespace lantern;
using namespace lantern::core;

namespace {

using D = Rep<double>;
using Function = std::function<D(D)>;
using Level = Fun<double(double)>;

/// f(0) = sin x, f(1) = x / 2, f(k) = f(k - 1) + f(k - 2): as many calls as Fibonacci's numbers, if each is
/// followed. What they capture keeps them from being the same at every call.
struct Tower {
  explicit Tower(std::size_t depth) {
    for (std::size_t k = 0; k <= depth; ++k) levels.emplace_back("f" + std::to_string(k));
    levels[0].define([this](D x) { return runs++, sin(x); });
    levels[1].define([this](D x) { return runs++, 0.5 * x; });
    for (std::size_t k = 2; k <= depth; ++k)
      levels[k].define([this, k](D x) { return runs++, levels[k - 1](x) + levels[k - 2](x); });
  }
  Tower(const Tower&) = delete;
  Tower& operator=(const Tower&) = delete;

  Function top() {
    return [this](D x) { return levels.back()(x); };
  }

  std::vector<Level> levels;
  std::size_t runs = 0;  ///< of bodies
};

double fibonacci(int n) {
  double a = 0, b = 1;
  for (; n > 0; --n) b = std::exchange(a, b) + b;
  return a;
}

/// Without captures, and each made when it is first called.
template <int k>
const Level& level() {
  static const Level* const made = [] {
    auto* f = new Level("g" + std::to_string(k));
    if constexpr (k == 0)
      f->define([](D x) { return sin(x); });
    else if constexpr (k == 1)
      f->define([](D x) { return 0.5 * x; });
    else
      f->define([](D x) { return level<k - 1>()(x) + level<k - 2>()(x); });
    return f;
  }();
  return *made;
}

/// The same, with captures.
template <int k>
const Level& capturing_level(std::size_t& runs) {
  static const Level* const made = [&runs] {
    auto* f = new Level("h" + std::to_string(k));
    if constexpr (k < 2)
      f->define([&runs](D x) { return runs++, k == 0 ? sin(x) : 0.5 * x; });
    else
      f->define([&runs](D x) { return runs++, capturing_level<k - 1>(runs)(x) + capturing_level<k - 2>(runs)(x); });
    return f;
  }();
  return *made;
}

struct Sizes {
  std::size_t staged = 0, optimised = 0;
};
Sizes sizes(const Function& f) {
  const auto program = [f](D x) { return f(x); };
  const auto module = driver::stage("f", {ir::F64}, detail::program_of(sig<double(double)>(program)).run);
  Sizes s{ir::size(*module), 0};
  run_on_large_stack([&] { passes::run_pipeline(*module, {.verify_each = true}); });
  s.optimised = ir::size(*module);
  return s;
}

Function value_of(Function f) { return f; }
Function gradient_of(Function f) { return grad(sig<double(double)>(f)); }
Function second_of(Function f) { return grad(sig<double(double)>(Function(grad(sig<double(double)>(f))))); }
Function forward_of(Function f) { return grad<mode::forward>(sig<double(double)>(f)); }
Function forward_over_reverse_of(Function f) {
  return grad<mode::forward>(sig<double(double)>(Function(grad(sig<double(double)>(f)))));
}

struct Order {
  const char* name;
  Function (*of)(Function);
  std::size_t most;  ///< operations a function, staged and after the passes
};
const Order orders[] = {{"value", value_of, 10},
                        {"gradient", gradient_of, 150},
                        {"forward", forward_of, 100},
                        {"second", second_of, 800},
                        {"forward over reverse", forward_over_reverse_of, 450}};

}  // namespace

TEST_CASE("of functions that call two others each is staged and differentiated once", "[functions]") {
  for (const Order& order : orders) {
    CAPTURE(order.name);
    std::vector<Sizes> found;
    for (const std::size_t depth : {20U, 40U, 80U}) {
      Tower tower(depth);
      found.push_back(sizes(order.of(tower.top())));
      CAPTURE(depth, found.back().staged, found.back().optimised);
      CHECK(tower.runs == depth + 1);
      CHECK(found.back().staged <= order.most * depth);
      CHECK(found.back().optimised <= order.most * depth);
    }
    // In proportion: 40 functions more take what twice 20 did.
    CHECK(static_cast<double>(found[2].staged - found[1].staged) <=
          2.3 * static_cast<double>(found[1].staged - found[0].staged));
    CHECK(static_cast<double>(found[2].optimised - found[1].optimised) <=
          2.3 * static_cast<double>(found[1].optimised - found[0].optimised));
  }
}

TEST_CASE("functions that are made when they are first called are staged once, too", "[functions]") {
  std::size_t runs = 0;
  for (const Order& order : orders) {
    CAPTURE(order.name);
    runs = 0;
    const Sizes with = sizes(order.of([&runs](D x) { return capturing_level<40>(runs)(x); }));
    CHECK(runs < 41 * 41 / 2);  // each was defined in the body of another, which may have changed what it sees
    const Sizes without = sizes(order.of([](D x) { return level<40>()(x); }));
    CHECK(with.staged <= 40 * order.most);
    CHECK(with.optimised <= 40 * order.most);
    CHECK(without.staged <= 40 * order.most);
    CHECK(without.optimised <= 40 * order.most);
  }
}

TEST_CASE("a tower of functions is computed and differentiated rightly", "[functions]") {
  constexpr int depth = 14;
  const double x = 0.7, a = fibonacci(depth - 1), b = fibonacci(depth);
  const double expected[] = {a * std::sin(x) + 0.5 * b * x, a * std::cos(x) + 0.5 * b,
                             a * std::cos(x) + 0.5 * b, -a * std::sin(x), -a * std::sin(x)};
  Tower tower(depth);
  for (std::size_t i = 0; i < std::size(orders); ++i) {
    CAPTURE(orders[i].name);
    const auto f = sig<double(double)>(orders[i].of(tower.top()));
    CHECK(eager(f)(x) == Approx(expected[i]).epsilon(1e-12));
    for (const Target target : {Target::c, Target::cpp})
      for (const int opt : {0, 1, 2, 3}) {
        CAPTURE(static_cast<int>(target), opt);
        if (target == Target::cpp && opt % 3 != 0) continue;
        CHECK(compile(f, {.target = target, .opt = opt})(x) == Approx(expected[i]).epsilon(1e-12));
      }
  }
}

TEST_CASE("a call means what the body means then, however deep it is called", "[functions][captures]") {
  const auto same = [](const auto& f, double x, double expected) {
    CHECK(eager(f)(x) == Approx(expected));
    CHECK(compile(f, {.target = Target::c, .opt = 0})(x) == Approx(expected));
    CHECK(compile(f, {.target = Target::c})(x) == Approx(expected));
    CHECK(compile(grad(f), {.target = Target::c})(x) == Approx(eager(grad(f))(x)));
  };
  SECTION("a variable of the program changes between two calls") {
    same(
        [](D x) {
          double n = 2;
          const auto inner = FUN<double(double)>("inner", [&n](auto, D y) { return n * y; });
          const auto outer = FUN<double(double)>("outer", [&inner](auto, D y) { return inner(y) + inner(y); });
          const D first = outer(x);
          n = 5;
          return first + 100.0 * outer(x);
        },
        1.5, 2 * 2 * 1.5 + 100 * 2 * 5 * 1.5);
  }
  SECTION("a variable of a body changes between two calls that it makes") {
    same(
        [](D x) {
          const auto outer = FUN<double(double)>("outer", [](auto, D y) {
            double n = 2;
            const auto inner = FUN<double(double)>("inner", [&n](auto, D z) { return n * z; });
            const auto between = FUN<double(double)>("between", [&inner](auto, D z) { return inner(z) + 1.0; });
            const D first = between(y) + inner(y);
            n = 7;
            return first + 100.0 * (between(y) + inner(y));
          });
          return outer(x) + outer(2.0 * x);
        },
        1.5, 3 * (2 * 2 * 1.5 + 100 * 2 * 7 * 1.5) + 2 * 101);
  }
  SECTION("a staged variable changes between two calls") {
    same(
        [](D x) {
          D n = 2.0 * x;
          const auto inner = FUN<double(double)>("inner", [&n](auto, D y) { return n * y; });
          const auto outer = FUN<double(double)>("outer", [&inner](auto, D y) { return inner(y) + inner(2.0 * y); });
          D sum = outer(x);
          n = n + 1.0;
          sum += outer(x);
          FOR(0, 2, [&](Rep<std::int64_t>) {
            n = n + 1.0;
            sum += outer(x);
          });
          return sum;
        },
        1.5, 3 * 1.5 * (3 + 4 + 5 + 6));
  }
  SECTION("calls that call each other") {
    double n = 1;
    Level odd("odd"), even("even");
    odd.define([&](D x) { return IF(x < 1.0, [&] { return D(n); }, [&] { return even(x - 1.0) + n; }); });
    even.define([&](D x) { return IF(x < 1.0, [&] { return D(0.0); }, [&] { return odd(x - 1.0) * n; }); });
    same(
        [&](D x) {
          n = 1;
          const D first = odd(x) + even(x);
          n = 2;
          return first + 100.0 * (odd(x) + even(x));
        },
        3.5, [] {
          const auto run = [](double x, double m) {
            std::function<double(double)> o, e;
            o = [&](double y) { return y < 1 ? m : e(y - 1) + m; };
            e = [&](double y) { return y < 1 ? 0.0 : o(y - 1) * m; };
            return o(x) + e(x);
          };
          return run(3.5, 1) + 100 * run(3.5, 2);
        }());
  }
}
