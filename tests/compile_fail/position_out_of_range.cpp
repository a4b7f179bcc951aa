// expect: grad: an argument position is out of range
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return x * x; }
Rep<double> g(Rep<double> x) { return grad<1>(f)(x); }
