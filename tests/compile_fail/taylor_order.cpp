// expect: taylor: expected an order of 0 or more
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return x * x; }
auto g() { return taylor<-1>(f); }
