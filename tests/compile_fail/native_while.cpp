// expect: a Rep<bool> has no value yet
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) {
  while (x > 1.0) x = x * 0.5;
  return x;
}
