// A part of a target: native control flow, and a function for other files.
#include <lantern/lantern.hpp>

using namespace lantern;

namespace {
Rep<double> f(Rep<double> x) {
  Rep<double> y = 1.0;
  for (Rep<int64_t> i = 0; i < POWER; ++i) y *= x;
  return y;
}
}  // namespace

LANTERN_FUNCTION(slope_of_f, grad(f))

double slope(double x) { return slope_of_f(x); }
