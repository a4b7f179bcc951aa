// expect alone: {"hessian: expected positions or mode::reverse, which is of the one argument, got both"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return hessian<0, mode::reverse>(f); }
