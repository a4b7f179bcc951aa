// expect alone: {"vjp: expected positions of arguments, as vjp<0, 2>(f), got a mode; grad<mode>(f) takes one"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return vjp<mode::taped>(f); }
