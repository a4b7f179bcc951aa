// expect alone: {"the condition of WHILE is a lambda of the state: WHILE(s, [&](auto s) { return s > 1.0; }, body)"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) {
  return WHILE(x, x > 1.0, [&](Rep<double> s) { return s * 0.5; });
}
