// Compiled ahead of time by lantern_add_executable: native control flow, a header, an external function.
#include <cstdio>
#include <lantern/lantern.hpp>

#include "power.hpp"

extern "C" double table(double x);

using namespace lantern;

const auto table_of = external("table", table);
Rep<double> f(Rep<double> x) {
  Rep<double> y = 1.0;
  for (Rep<int64_t> i = 0; i < power; ++i) y *= SCALE * x;
  return y;
}
Rep<double> looked_up(Rep<double> x) { return table_of(x) * 2.0; }

LANTERN_FUNCTION(df, grad(f))
LANTERN_FUNCTION(value, looked_up)

int main() { std::printf("%g %g\n", df(1.0), value(1.0)); }
