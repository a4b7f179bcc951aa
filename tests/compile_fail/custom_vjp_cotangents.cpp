// expect: custom_vjp: expected bwd to give the cotangent of the floating argument of f, or a tuple of the cotangents
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
D f(D x, D y) { return x * y; }
D g(D x) {
  return custom_vjp(
      f, [](D a, D b) { return std::tuple(a * b, a); }, [](D a, D r) { return a * r; })(x, x);
}
