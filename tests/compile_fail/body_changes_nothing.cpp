// warns: declared with attribute
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) {
  Rep<double> s = 0.0;
  FOR(0, 3, [&](Rep<int64_t>) { s + x; });
  return s;
}
