// expect alone: {"a lambda that captures by value, [=], or a const Rep is assigned: write [&], so that the variable itself changes"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) {
  Rep<double> s = 0.0;
  FOR(0, 3, [=](Rep<int64_t>) { s = s + x; });
  return s;
}
