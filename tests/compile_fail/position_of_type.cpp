// expect alone: {"grad: expected positions of arguments, a mode or both, as grad<mode::forward, 0>(f), got a type"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return grad<double>(f); }
