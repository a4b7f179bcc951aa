// expect alone: {"compile: expected a function, and not its arguments, which follow in parentheses of their own: compile(f)(x)"}
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
D f(D x) { return x * x; }
auto g() { return compile(grad(f), 3.0); }
