// expect alone: {"vjp: expected the position of an argument, the first is 0, got a negative number"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return vjp<-1>(f); }
