// Many threads that stage, compile and run at once, with all that they share: functions, values that eager
// evaluation holds, compiled code and its tiers, and the cache on the disk. Built with
// -DLANTERN_SANITIZE=thread, ThreadSanitizer watches.
#include <fmt/format.h>

#include <barrier>
#include <catch2/catch.hpp>
#include <cmath>
#include <mutex>
#include <thread>
#include <vector>

#include "lantern/codegen/toolchain/process.hpp"
#include "lantern/lantern.hpp"

// Clang and LLVM are not built with the sanitizer, which does not see how they order their own accesses.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libLLVM\n"
         "called_from_lib:libclang-cpp\n"
         "mutex:llvm::orc\n";  // locked in there, unlocked in an inline function
}

using namespace lantern;

namespace {

using D = Rep<double>;
using I = Rep<std::int64_t>;
using A = Rep<Array<double>>;
using M = Rep<Tensor<double, dyn, dyn>>;
using T = Rep<Tree<double>>;

constexpr std::size_t threads = 64;

/// Runs `work(thread)` in all threads at once; what differs from what was expected, one text for each.
class Crowd {
 public:
  template <class Work>
  void run(Work work) {
    std::barrier start(threads);
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        start.arrive_and_wait();
        try {
          work(t);
        } catch (const std::exception& e) {
          add(fmt::format("thread {} raised: {}", t, e.what()));
        }
      });
    for (std::thread& t : all) t.join();
    for (const std::string& text : wrong_) UNSCOPED_INFO(text);
    CHECK(wrong_.empty());
  }

  void expect(const std::string& what, double found, double expected) {
    if (!(std::abs(found - expected) <= 1e-12 * std::max(1.0, std::abs(expected))))
      add(fmt::format("{}: expected {}, got {}", what, expected, found));
  }
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    wrong_.push_back(std::move(text));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> wrong_;
};

const auto power = FUN<double(double, std::int64_t)>("power", [](auto self, D x, I n) {
  return IF(
      n == 0, [&] { return D(1.0); }, [&] { return x * self(x, n - 1); });
});

/// x^6 + x^3 (by a loop and by a recursion), the sign by a branch; x > 0.
D scalar_program(D x) {
  const D cubed = FOR(0, 3, D(1.0), [&](I, D p) { return p * x; });
  return IF(
      x > 0.0, [&] { return cubed + power(x, 6); }, [&] { return -cubed; });
}
double slope_of_scalar(double x) { return 3 * x * x + 6 * std::pow(x, 5); }

/// sum of a_i^2 times x
D array_program(D x, A a) {
  return FOR(0, a.size(), D(0.0), [&](I i, D sum) { return sum + a[i] * a[i]; }) * x;
}

/// x times the product of the tree's values: its slope is the product, where the leaves give 1.
D tree_program(D x, T tree) {
  return x * TREE(D(1.0), tree, [](D l, D r, T node) { return l * r * node.value(); });
}

std::vector<double> numbers(std::size_t n) {
  std::vector<double> a(n);
  for (std::size_t i = 0; i < n; ++i) a[i] = 0.5 + static_cast<double>(i % 7);
  return a;
}
double squares(const std::vector<double>& a) {
  double sum = 0;
  for (double v : a) sum += v * v;
  return sum;
}

LANTERN_FUNCTION(first_called_by_many, grad(scalar_program))
LANTERN_FUNCTION(second_called_by_many, value_and_grad<0>(array_program))

}  // namespace

TEST_CASE("64 threads differentiate eagerly and share what they read", "[threads]") {
  Crowd crowd;
  // Values that all of them hold, and change for themselves.
  const std::vector<double> elements = numbers(20);
  const A array = fill(D(0.5), 20);
  const M matrix = fill(D(2.0), 3, 4);
  const D number = 1.5;
  const T tree = Tree<double>(2.0, Tree<double>(3.0), Tree<double>(0.5, Tree<double>(), Tree<double>(4.0)));
  const auto keep = [](D x) { return x; };
  crowd.run([&](std::size_t t) {
    const double x = 1.0 + static_cast<double>(t) / threads;
    for (int i = 0; i < 4; ++i) {
      crowd.expect("scalar", eager(grad(scalar_program))(x), slope_of_scalar(x));
      crowd.expect("array", eager(grad<0>(array_program))(x, elements), squares(elements));
      crowd.expect("by forward mode", eager(grad<0, mode::forward>(array_program))(x, elements),
                   squares(elements));
      const auto shared = [&](D y) {
        const A own = array.set(static_cast<std::int64_t>(t % 20), y);
        return sum(own) + sum(matrix) * y + number * y +
               TREE(y, tree, [](D l, D r, T node) { return l + r + node.value(); });
      };
      // 19 * 0.5 + y, 24 y, 1.5 y; five leaves of y and the sum 9.5.
      crowd.expect("shared values", eager(shared)(x), 9.5 + x + 24 * x + 1.5 * x + 5 * x + 9.5);
      crowd.expect("their slope", eager(grad(shared))(x), 1 + 24 + 1.5 + 5);
      crowd.expect("after an error", eager(keep)(x), x);
      try {
        eager([&](D y) { return array[20] * y; })(x);
        crowd.add("an index outside an array was not noticed");
      } catch (const Error&) {
      }
    }
  });
}

TEST_CASE("64 threads stage and compile at once", "[threads]") {
  Crowd crowd;
  const std::vector<double> elements = numbers(33);
  const Tree<double> tree(2.0, Tree<double>(3.0), Tree<double>(0.5, Tree<double>(), Tree<double>(4.0)));
  const codegen::TemporaryDirectory directory;
  crowd.run([&](std::size_t t) {
    const double x = 1.0 + static_cast<double>(t) / threads;
    crowd.expect("LANTERN_FUNCTION", first_called_by_many(x), slope_of_scalar(x));
    crowd.expect("LANTERN_FUNCTION of an array", std::get<1>(second_called_by_many(x, elements)),
                 squares(elements));
    const auto own = [k = static_cast<double>(t)](D y) { return k * y * y + scalar_program(y); };
    const auto tiers = compile(grad(own));
    for (int i = 0; i < 20; ++i)
      crowd.expect("its own, in tiers", tiers(x), 2 * static_cast<double>(t) * x + slope_of_scalar(x));
    crowd.expect("a tree", compile(grad<0>(tree_program), {.target = Target::c})(x, tree), 12);
    const auto cached = compile(
        grad<0>(array_program),
        {.target = Target::cpp, .opt = static_cast<int>(t % 2) + 1, .cache = std::string(directory.path())});
    crowd.expect("from the cache", cached(x, elements), squares(elements));
    try {
      compile(
          [](D y, A a) {
            return IF(
                y > 0.0, [&] { return a; }, [&] { return concat(a, a); })[a.size()];
          },
          {.target = Target::c})(x, elements);
      crowd.add("an index outside an array was not noticed");
    } catch (const Error&) {
    }
    tiers.wait();
    crowd.expect("its second tier", tiers(x), 2 * static_cast<double>(t) * x + slope_of_scalar(x));
  });
}

TEST_CASE("64 threads call one function whose loops have threads too", "[threads]") {
  Crowd crowd;
  const auto gradient =
      compile(value_and_grad([](A a, D x) { return sum(sin(a * x) + a * a); }), {.threads = 2});
  const auto a_pair = compile(grad<0>(array_program));
  const std::vector<double> large = numbers(4000), small = numbers(5);
  double value = 0, slope = 0;
  for (double v : large) value += std::sin(v * 0.5) + v * v, slope += v * std::cos(v * 0.5);
  crowd.run([&](std::size_t t) {
    for (int i = 0; i < 8; ++i) {
      const auto [y, by] = gradient(large, 0.5);
      crowd.expect("value", y / value, 1);
      crowd.expect("slope", std::get<1>(by) / slope, 1);
      crowd.expect("element", std::get<0>(by)[t], 0.5 * std::cos(large[t] * 0.5) + 2 * large[t]);
      crowd.expect("other", a_pair(2.0, small), squares(small));
    }
  });
}
