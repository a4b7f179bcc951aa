// One program under every AD mode: value, gradient, time and memory.
//
// Eagerly a mode is a handler: the program runs, and the handler says what each operation does. Staged, the
// same handler says what code is made; after the passes most modes are the same code, and cost the same.
#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <lantern/lantern.hpp>
#include <thread>
#include <vector>

using namespace lantern;

namespace {

constexpr std::int64_t iterations = 400;
constexpr double at = 1.1;

/// Loop, branch, and a part that is marked for being computed again.
Rep<double> program(Rep<double> x, Rep<std::int64_t> n) {
  const auto part = checkpoint(sig<double(double, double)>([](Rep<double> t, Rep<double> y) {
    return IF(
        t > 0.5, [&] { return sin(t) * y; }, [&] { return t + 0.25 * y; });
  }));
  return FOR(0, n, x, [&](Rep<std::int64_t>, Rep<double> t) { return part(t, x); });
}

template <class Work>
double milliseconds(const Work& work) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// Bytes of tape and arena that a compiled function needs.
template <class F>
std::int64_t workspace_of(const F& f) {
  std::int64_t bytes = 0;
  std::thread([&] {
    f(at, 100 * iterations);
    bytes = workspace_bytes();
  }).join();
  return bytes;
}

int wrong = 0;
double value = 0, slope = 0, eager_unit = 0, staged_unit = 0;

template <mode M>
void row(const char* name) {
  const auto g = value_and_grad<M>(&program);
  const auto run = eager(g);
  const auto [y, dy] = run(at, iterations);
  wrong += std::abs(y - value) > 1e-12 || std::abs(dy - slope) > 1e-9 * std::abs(slope);
  const double eagerly = milliseconds([&] { run(at, iterations); }) / eager_unit;
  if constexpr (M == mode::closures || M == mode::checkpointed_closures) {
    fmt::print("{:<22} {:>10.6f} {:>10.6f} {:>10.1f} {:>10} {:>14}\n", name, y, dy, eagerly, "-", "-");
  } else {
    const auto code = compile(g, {.target = Target::cpp});
    const auto [z, dz] = code(at, iterations);
    wrong += std::abs(z - value) > 1e-12 || std::abs(dz - slope) > 1e-9 * std::abs(slope);
    const double staged = milliseconds([&] { code(at, 100 * iterations); }) / staged_unit;
    fmt::print("{:<22} {:>10.6f} {:>10.6f} {:>10.1f} {:>10.1f} {:>14}\n", name, y, dy, eagerly, staged,
               workspace_of(code));
  }
}

}  // namespace

int main() {
  const auto run = eager(&program);
  const auto code = compile(&program, {.target = Target::cpp});
  value = run(at, iterations);
  slope = (run(at + 1e-6, iterations) - run(at - 1e-6, iterations)) / 2e-6;
  const double exact = eager(grad<mode::forward>(&program))(at, iterations);
  wrong += std::abs(exact - slope) > 1e-5 * std::abs(exact);
  slope = exact;
  eager_unit = milliseconds([&] { run(at, iterations); });
  staged_unit = milliseconds([&] { code(at, 100 * iterations); });

  fmt::print("{:<22} {:>10} {:>10} {:>10} {:>10} {:>14}\n", "mode", "value", "gradient", "eager", "staged",
             "bytes, staged");
  row<mode::forward>("forward");
  row<mode::reverse>("reverse");
  row<mode::cps>("cps");
  row<mode::global_tape>("global_tape");
  row<mode::functional>("functional");
  row<mode::taped>("taped");
  row<mode::checkpointed>("checkpointed");
  row<mode::closures>("closures");
  row<mode::checkpointed_closures>("checkpointed_closures");
  row<mode::divide_and_conquer>("divide_and_conquer");
  row<mode::continuation>("continuation");
  fmt::print(
      "Times are multiples of evaluation's: eagerly {:.3f} ms for {} iterations, staged {:.3f} ms for {}; bytes "
      "for {}.\n",
      eager_unit, iterations, staged_unit, 100 * iterations, 100 * iterations);
  return wrong == 0 ? 0 : 1;
}
