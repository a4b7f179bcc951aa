// A native if on a Rep is decided while staging, so it does not compile.
// expect: a Rep<bool> has no value yet: native if, while, ?:, && and || cannot branch on it. Write IF(c, [&] { return a; }, [&] { return b; })
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) {
  if (x > 0.0) return x;
  return -x;
}
