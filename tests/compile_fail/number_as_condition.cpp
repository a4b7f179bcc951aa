// expect: a Rep has no value yet
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) {
  if (x) return x;
  return -x;
}
