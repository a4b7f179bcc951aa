// expect: custom_vjp: expected bwd to take the residuals that fwd gives and the cotangent of the result
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
D f(D x) { return x * x; }
D g(D x) {
  return custom_vjp(f, [](D a) { return std::tuple(a * a, a); }, [](D r) { return r; })(x);
}
