// expect: taylor: expected an order, as taylor<2>(f), got a mode
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return x * x; }
auto g() { return taylor<mode::taped>(f); }
