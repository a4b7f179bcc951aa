// expect alone: {"hessian: position 2 is given twice"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return hessian<2, 0, 2>(f); }
