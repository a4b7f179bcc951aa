// expect: custom_vjp: expected fwd to give a tuple of the result of f and the residuals
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
D f(D x) { return x * x; }
D g(D x) {
  return custom_vjp(f, [](D a) { return a * a; }, [](D r) { return r; })(x);
}
