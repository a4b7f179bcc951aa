// warns: the value itself stays as it was: write a = a.set(...)
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<Array<double>> a) {
  a.set(0, 5.0);
  return a[0];
}
