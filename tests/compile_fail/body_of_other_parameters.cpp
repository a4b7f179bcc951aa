// expect alone: the body of FOR takes the index, a Rep<int64_t>, then the state, or its components one by one
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) {
  return FOR(0, 3, x, [&](Rep<double> s) { return s * x; });
}
