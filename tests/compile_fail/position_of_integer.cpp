// expect alone: {"hvp: the argument at position 1 has no floating-point number: there is no derivative by it"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return hvp<0, 1>(f); }
