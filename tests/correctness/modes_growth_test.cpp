// Eager derivatives take time and memory in proportion to the operations of the program (thesis, 6.1): shown
// by counting, in every mode. Divide and conquer is quadratic by design.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "lantern/lantern.hpp"

namespace {

std::atomic<std::int64_t> allocations{0};
std::atomic<std::int64_t> allocated_bytes{0};

}  // namespace

// Not inlined: the compiler would see malloc beside delete.
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<std::size_t>(alignment), bytes) == 0) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return operator new(bytes, std::align_val_t(alignof(std::max_align_t)));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

using namespace lantern;
using namespace lantern::core;

namespace {

using D = Rep<double>;
using Function = std::function<D(D)>;

/// The handler below all others: it computes, and counts.
class Counting : public Mode {
 public:
  Counting() : Mode(0) {}
  const char* name() const override { return "counting"; }
  Datum apply(const Operation& op, std::span<const Datum> operands) override {
    ++operations;
    Datums below;
    for (const Datum& d : operands)
      below.push_back(d.is_tagged() ? static_cast<TaggedBox*>(d.box())->primal : d);
    return number(perform(op, below));
  }
  Datum number(const Datum& primal) { return Datum::boxed(new TaggedBox(*this, primal), primal.type()); }

  std::int64_t operations = 0;
};

/// Arithmetic operations that f performs.
std::int64_t operations_of(const Function& f, double x = 0.5) {
  const auto counting = std::make_shared<Counting>();
  f(D(counting->number(Datum::number(x, ir::F64))));
  return counting->operations;
}

/// The series of the thesis: four operations a repetition, one value that all of them read.
Function series(std::int64_t n) {
  return [n](D x) {
    D prev = 1.0, acc = 1.0;
    for (std::int64_t i = 0; i < n; ++i) {
      prev = prev * -(x - 1.0);
      acc = prev + acc;
    }
    return acc;
  };
}

/// 2^n paths lead through n repetitions.
Function squares(std::int64_t n) {
  return [n](D x) {
    D t = x;
    for (std::int64_t i = 0; i < n; ++i) t = 0.5 * (t + t * t);
    return t;
  };
}

struct Way {
  const char* name;
  std::function<Function(Function)> grad;
  std::int64_t per_repetition;  ///< operations of the series' gradient
};

template <mode M>
Way way(const char* name, std::int64_t per_repetition) {
  return {name, [](const Function& f) { return Function(lantern::grad<M>(f)); }, per_repetition};
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      way<mode::forward>("forward", 8),
      way<mode::reverse>("stateful", 9),
      way<mode::cps>("cps", 9),
      way<mode::global_tape>("global tape", 9),
      way<mode::functional>("functional", 9),
      way<mode::continuation>("continuation", 9),
      way<mode::taped>("taped", 10),  // each factor on the tape is multiplied with, also 1
      way<mode::checkpointed>("checkpointed", 9),
      way<mode::closures>("closures", 9),
  };
  return all;
}

}  // namespace

TEST_CASE("eager derivatives perform a constant number of operations for each of the program's", "[modes]") {
  for (const auto& program : {&series, &squares}) {
    for (const Way& w : ways()) {
      const auto count = [&](std::int64_t n) { return operations_of(w.grad(program(n))); };
      const std::int64_t one = count(100), two = count(200), three = count(300);
      INFO(w.name << ": " << one << ", " << two << ", " << three);
      CHECK(three - two == two - one);
      if (program == &series) CHECK(two - one == 100 * w.per_repetition);
    }
  }
}

TEST_CASE("eager derivatives take memory once, in proportion to the program", "[modes]") {
  constexpr std::int64_t n = 50'000, operations = 4 * n, region = std::int64_t{1} << 25;
  for (const Way& w : ways()) {
    const auto gradient = w.grad(series(n));
    const auto run = [&] {
      const std::int64_t calls = allocations, bytes = allocated_bytes;
      CHECK(eager(gradient)(0.5) == Approx(-4));
      return std::pair(allocations - calls, allocated_bytes - bytes);
    };
    const std::int64_t first = run().second;
    const auto [calls, bytes] = run();
    INFO(w.name << ": first " << first << " bytes; again " << calls << " allocations, " << bytes << " bytes");
    CHECK(first <= 512 * operations + region);  // a region of the pool may be taken for the last byte
    CHECK(calls < 100);
    CHECK(bytes < 10'000);
  }
}
