// expect alone: {"taylor: expected an order of 0 or more"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return taylor<-1>(f); }
