// expect: grad: no floating-point argument to differentiate with respect to
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<int64_t> n) { return cast<double>(n); }
Rep<double> g(Rep<int64_t> n) { grad(f)(n); return 0.0; }
