// expect alone: {"FOR takes both bounds: FOR(0, n, s, [&](auto i, auto s) { return ...; }) gives the final s, FOR(0, n, [&](auto i) { ...; }) changes variables"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<Array<double>> f(Rep<Array<double>> a) {
  return FOR(a.size(), a, [&](Rep<int64_t> i, Rep<Array<double>> s) { return s.set(i, s[i] * 2.0); });
}
