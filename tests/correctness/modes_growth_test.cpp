// Eager derivatives take time and memory in proportion to the operations of the program (thesis, 6.1): shown
// by counting, in every mode. Divide and conquer is quadratic by design, and continuation mode as the thesis
// has it (6.2): what it costs is the number of paths.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "fit.hpp"
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

/// 3^n paths lead through n repetitions.
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

template <auto... O>
Way way(const char* name, std::int64_t per_repetition) {
  return {name, [](const Function& f) { return Function(lantern::grad<O...>(f)); }, per_repetition};
}

/// The fast paths.
const std::vector<Way>& fast_ways() {
  static const std::vector<Way> all{
      way<mode::forward, form::fast>("forward", 8), way<mode::reverse, form::fast>("stateful", 9),
      way<mode::continuation, form::fast>("continuation, factored", 9),
      way<mode::taped, form::fast>("taped", 10),  // each factor on the tape is multiplied with, also 1
  };
  return all;
}
/// Those and the rules.
const std::vector<Way>& ways() {
  static const std::vector<Way> all = [] {
    std::vector<Way> ways{
        way<mode::forward, form::literal>("forward by a handler", 8),
        way<mode::reverse, form::literal>("stateful by shift", 9),
        way<mode::cps>("cps", 9),
        way<mode::global_tape>("global tape", 9),
        way<mode::functional>("functional", 9),
        way<mode::taped, form::literal>("taped by a handler", 10),
        way<mode::checkpointed>("checkpointed", 9),
        way<mode::closures>("closures", 9),
        way<mode::checkpointed_closures>("checkpointed closures", 9),
    };
    ways.insert(ways.end(), fast_ways().begin(), fast_ways().end());
    return ways;
  }();
  return all;
}

/// The fit of operations over repetitions in a plot of logarithms.
bench::PowerLaw growth(const std::function<std::int64_t(std::int64_t)>& count,
                       const std::vector<std::int64_t>& sizes) {
  std::vector<std::pair<double, double>> points;
  for (const std::int64_t n : sizes)
    points.emplace_back(static_cast<double>(n), static_cast<double>(count(n)));
  return bench::power_law(points);
}
const std::vector<std::int64_t> kSizes{100, 200, 500, 1000, 2000, 5000};

}  // namespace

TEST_CASE("eager derivatives perform a constant number of operations for each of the program's", "[modes]") {
  for (const auto& program : {&series, &squares}) {
    for (const Way& w : ways()) {
      const auto count = [&](std::int64_t n) { return operations_of(w.grad(program(n))); };
      const std::int64_t one = count(100), two = count(200), three = count(300);
      INFO(w.name << ": " << one << ", " << two << ", " << three);
      CHECK(three - two == two - one);
      if (program == &series) CHECK(two - one == 100 * w.per_repetition);
      const bench::PowerLaw fit = growth(count, kSizes);
      CHECK(fit.r2 >= 0.999);
      CHECK(fit.slope == Approx(1).margin(0.01));
    }
  }
}

TEST_CASE("continuation mode performs as many operations as there are paths", "[modes]") {
  const auto gradient = [](const Function& f) { return operations_of(grad<mode::continuation, form::literal>(f)); };
  const bench::PowerLaw fit =
      growth([&](std::int64_t n) { return gradient(series(n)); }, {50, 100, 200, 400, 800});
  CHECK(fit.r2 >= 0.999);
  CHECK(fit.slope == Approx(2).margin(0.05));
  for (std::int64_t n = 8; n < 12; ++n)
    CHECK(static_cast<double>(gradient(squares(n + 1))) / static_cast<double>(gradient(squares(n))) ==
          Approx(3).epsilon(0.01));
  CHECK(operations_of(grad<mode::continuation, form::fast>(squares(1000))) ==
        operations_of(grad<mode::reverse>(squares(1000))));
}

TEST_CASE("a checkpointed part costs one more evaluation of it, however the program is cut", "[modes]") {
  constexpr std::int64_t n = 1000;
  const auto cut = [](std::int64_t parts) -> Function {
    return [parts, part = squares(n / parts)](D x) {
      D t = x;
      for (std::int64_t i = 0; i < parts; ++i) t = checkpoint(part)(t);
      return t;
    };
  };
  // Thesis, 5.2: nested, a part is evaluated once for each part around it, and once more for itself.
  const auto nested = [](std::int64_t depth) -> Function {
    Function f = squares(n);
    for (std::int64_t i = 0; i < depth; ++i) f = checkpoint(f);
    return f;
  };
  const std::int64_t once = operations_of(squares(n)),
                     whole = operations_of(grad<mode::checkpointed>(squares(n)));
  for (const auto& [name, gradient] :
       {std::pair<const char*, std::function<Function(Function)>>(
            "literal", [](const Function& f) { return Function(grad<mode::checkpointed>(f)); }),
        std::pair<const char*, std::function<Function(Function)>>(
            "fast", [](const Function& f) { return Function(grad<mode::reverse>(f)); })}) {
    for (const std::int64_t parts : {1, 2, 5, 10, 50, 200, 1000}) {
      INFO(name << ", " << parts << " parts");
      CHECK(operations_of(gradient(cut(parts))) == whole + once);
    }
    for (const std::int64_t depth : {1, 2, 3, 5}) {
      INFO(name << ", depth " << depth);
      CHECK(operations_of(gradient(nested(depth))) == whole + depth * once);
    }
    const bench::PowerLaw fit =
        growth([&, gradient = gradient](
                   std::int64_t size) { return operations_of(gradient(checkpoint(squares(size)))); },
               kSizes);
    CHECK(fit.r2 >= 0.999);
    CHECK(fit.slope == Approx(1).margin(0.01));
  }
}

TEST_CASE("evaluation by a handler, and second derivatives, are linear too", "[modes]") {
  const auto run = [](const Function& f) {
    return ad::Program{"f", [f](const Datums& x) { return Datums{f(D(x[0])).datum()}; }};
  };
  for (const auto& program : {&series, &squares}) {
    const auto evaluate = [&](std::int64_t n) {
      return operations_of([&](D x) { return D(ad::evaluate_by_handler(run(program(n)), {x.datum()})[0]); });
    };
    CHECK(evaluate(500) == operations_of(program(500)));
    const auto second = [&](std::int64_t n) {
      return operations_of([&](D x) {
        return D(ad::second_derivative(run(program(n)), {x.datum()}, {true}, {Datum::number(1.0, ir::F64)},
                                       {})[2][0]);
      });
    };
    const bench::PowerLaw fit = growth(second, kSizes);
    CHECK(fit.r2 >= 0.999);
    CHECK(fit.slope == Approx(1).margin(0.01));
  }
}

TEST_CASE("fast paths take memory once, in proportion to the program", "[modes]") {
  constexpr std::int64_t n = 50'000, operations = 4 * n, region = std::int64_t{1} << 25;
  for (const Way& w : fast_ways()) {
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
