// expect alone: {"grad: expected a function, and not its arguments, which follow in parentheses of their own: grad(f)(x)"}
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
D f(D x) { return x * x; }
auto g() { return grad(f, 3.0); }
