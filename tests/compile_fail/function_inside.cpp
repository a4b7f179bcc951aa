// expect: move LANTERN_FUNCTION(df, ...) out of the function, to namespace scope
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return x * x; }
double h() {
  LANTERN_FUNCTION(df, grad(f))
  return df(3.0);
}
