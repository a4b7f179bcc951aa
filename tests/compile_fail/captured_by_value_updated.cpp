// expect alone: {"a lambda that captures by value, [=], or a const Rep is assigned: write [&], so that the variable itself changes"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) {
  Rep<double> s = 0.0;
  IF(x > 0.0, [=] { s += x; });
  return s;
}
