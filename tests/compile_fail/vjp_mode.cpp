// expect: vjp: expected no mode: it is reverse mode; grad<mode>(f) takes one
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return x * x; }
auto g() { return vjp<mode::taped>(f); }
