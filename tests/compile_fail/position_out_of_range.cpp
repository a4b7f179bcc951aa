// expect alone: {"grad: position 3 is out of range: the function has 3 arguments, the first is 0"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return grad<3>(f); }
