// compile(): time to the first result through each tier, and memory over many compilations in a row.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "bench.hpp"
#include "lantern/lantern.hpp"

namespace lantern::bench {
namespace {

Rep<double> f(Rep<double> x) { return 2.0 * x + x * x * x; }

double milliseconds(auto&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// Resident memory in MB.
double resident() {
  long pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident_pages;
  return static_cast<double>(resident_pages) * 4096 / 1e6;
}

volatile double sink = 0;

void first_call(const char* tier, const CompileOptions& options, int repeats) {
  const auto once = [&] { sink = compile(grad(f), options)(3.0); };
  const double first = milliseconds(once);
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(milliseconds(once));
  std::printf("  %-10s first in the process %7.2f ms   median of %3d after it %7.2f ms\n", tier, first, repeats,
              median(times));
}

void memory(const char* tier, const CompileOptions& options, int compiles) {
  for (int i = 0; i < compiles / 10; ++i) sink = compile(grad(f), options)(3.0);
  const double before = resident();
  for (int i = 0; i < compiles; ++i) sink = compile(grad(f), options)(3.0);
  const double after = resident();
  std::printf("  %-10s %5d compilations: %6.1f MB before, %6.1f MB after\n", tier, compiles, before, after);
}

}  // namespace

int bench_jit(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  std::printf("compile(grad(f)) of f(x) = 2x + x*x*x, from compile() to the first result\n");
  first_call("tcc", {.target = Target::c}, quick ? 20 : 200);
  first_call("clang -O3", {.target = Target::cpp, .opt = 3}, quick ? 5 : 30);
  std::printf("resident memory\n");
  memory("tcc", {.target = Target::c}, quick ? 500 : 5000);
  memory("clang -O3", {.target = Target::cpp, .opt = 3}, quick ? 20 : 200);
  return 0;
}

}  // namespace lantern::bench
