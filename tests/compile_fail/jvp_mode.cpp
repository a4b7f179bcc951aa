// expect alone: {"jvp: expected positions of arguments, as jvp<0, 2>(f), got a mode; grad<mode>(f) takes one"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return jvp<mode::taped>(f); }
