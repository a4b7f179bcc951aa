// expect: custom_jvp: expected jvp to give a tuple of the result of f and its tangent
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
D f(D x) { return x * x; }
D g(D x) {
  return custom_jvp(f, [](D a, D da) { return 2.0 * a * da; })(x);
}
