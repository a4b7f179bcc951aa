// expect: the two branches of IF must agree: the same Rep types component by component
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n) {
  IF(x > 0.0, [&] { return x; }, [&] { return n; });
  return x;
}
