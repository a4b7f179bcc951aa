// expect alone: {"value_and_grad: expected positions of arguments, a mode or both, as value_and_grad<mode::forward, 0>(f), got a double"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return value_and_grad<0.5>(f); }
