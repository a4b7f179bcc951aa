// Reverse mode in bounded memory: a function computed again, and loops that keep some of their states.
#include <fmt/core.h>

#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> step(Rep<int64_t>, Rep<double> s) { return sin(s) + 0.1; }
Rep<double> steps(Rep<double> x) { return FOR(0, 1000, x, step); }

// a derivative keeps the argument, and computes the inside again
Rep<double> a(Rep<double> x) { return checkpoint(steps)(x); }
// at most a megabyte for any n
Rep<double> b(Rep<double> x, Rep<int64_t> n) { return FOR(0, n, x, step, {.memory = 1 << 20}); }
// 20 states, and what 20 iterations save
Rep<double> c(Rep<double> x, Rep<int64_t> n) { return FOR(0, n, x, step, {.checkpoints = 20}); }

LANTERN_FUNCTION(da, value_and_grad(a))
LANTERN_FUNCTION(db, value_and_grad(b))
LANTERN_FUNCTION(dc, value_and_grad(c))

int main() {
  const auto [ya, ga] = da(0.5);
  const auto [yb, gb] = db(0.5, 1000);
  const auto [yc, gc] = dc(0.5, 1000);
  fmt::print("computed again:    {:.6f}, slope {:.3e}\n", ya, ga);
  fmt::print("within a megabyte: {:.6f}, slope {:.3e}\n", yb, gb);
  fmt::print("with 20 states:    {:.6f}, slope {:.3e}\n", yc, gc);
  fmt::print("10^7 steps within a megabyte: {:.6f}\n", std::get<0>(db(0.5, 10'000'000)));
}
