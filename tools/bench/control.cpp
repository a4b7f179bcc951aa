// Cost of the control operators: median of repeats, in nanoseconds an operation.
#include "lantern/compiler/control/control.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench.hpp"

namespace lantern::bench {

using namespace core;
namespace {

struct Tick : Effect<double(double)> {};

// Runs `f`, which does `operations` operations, `repeats` times after one warm-up.
template <class F>
double median_ns(int repeats, int operations, F f) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = -1; i < repeats; ++i) {
    const auto start = Clock::now();
    f();
    const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
    if (i >= 0) times.push_back(elapsed.count() / operations);
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<std::size_t>(repeats / 2)];
}

volatile double sink = 0;

// n operations in one reset, as reverse mode does them: each resumes, then works on the way back.
void shifts(int n) {
  Prompt<void> p;
  double back = 0;
  reset(p, [&] {
    double x = 1;
    for (int i = 0; i < n; ++i) {
      x = shift<double>(p, [x, &back](auto k) {
        k(x + 1);
        back += x;
      });
    }
  });
  sink = back;
}

void resets(int n) {
  Prompt<int> p;
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += reset(p, [i] { return i; });
  sink = sum;
}

void performs(int n) {
  double back = 0;
  handle(
      [n] {
        double x = 1;
        for (int i = 0; i < n; ++i) x = perform<Tick>(x);
      },
      on<Tick>([&](double x, auto k) {
        k(x + 1);
        back += x;
      }));
  sink = back;
}

void report(const char* what, int n, double ns) { std::printf("%-34s %9d %8.1f\n", what, n, ns); }

}  // namespace

int bench_control(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 21;
  std::printf("%-34s %9s %8s\n", "operation", "count", "ns each");
  for (int n : {100, 10'000, 1'000'000})
    report("shift and resume", n, median_ns(repeats, n, [n] { shifts(n); }));
  for (int n : {100, 10'000, 1'000'000})
    report("perform and resume", n, median_ns(repeats, n, [n] { performs(n); }));
  constexpr int kResets = 100'000;
  report("reset, from the thread's stack", kResets, median_ns(repeats, kResets, [] { resets(kResets); }));
  report("reset, from a large stack", kResets,
         median_ns(repeats, kResets, [] { run_on_large_stack([] { resets(kResets); }); }));
  return 0;
}

}  // namespace lantern::bench
