// expect alone: {"FOR takes both bounds: FOR(0, n, s, [&](auto i, auto s) { return ...; }) gives the final s, FOR(0, n, [&](auto i) { ...; }) changes variables"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<Array<double>> a) {
  Var<double> s = 0.0;
  FOR(a.size(), [&](Rep<int64_t> i) { s += a[i]; });
  return s;
}
