// expect: jvp: expected no mode: it is forward mode; grad<mode>(f) takes one
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return x * x; }
auto g() { return jvp<mode::taped>(f); }
