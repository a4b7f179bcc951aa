// expect alone: a mutable lambda changes its own copies, which end with it: write [&], without mutable, so that the variables themselves change
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) {
  Rep<double> s = 0.0;
  FOR(0, 3, [=](Rep<int64_t>) mutable { s = s + x; });
  return s;
}
