// expect alone: {"grad: no floating-point argument to differentiate with respect to"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<int64_t> n) { return cast<double>(n); }
auto g() { return grad(f); }
