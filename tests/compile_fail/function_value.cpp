// expect alone: {"expected a function, got its value: write f for f(x)"}
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
D f(D x) { return x * x; }
auto g() { return grad(f(D(2.0))); }
