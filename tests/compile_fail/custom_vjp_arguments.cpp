// expect: custom_vjp: expected fwd to take the arguments of f
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
D f(D x, D y) { return x * y; }
D g(D x) {
  return custom_vjp(f, [](D a) { return std::tuple(a, a); }, [](D a, D r) { return std::tuple(a * r, r); })(x, x);
}
