// expect alone: {"write a lambda that calls the function you mean, [](Rep<double> x) { return f(x); }, or choose it by its arguments, f<Rep<double>>: several functions have this name, or it is a template"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> range(Rep<double> x) { return x * x; }
auto df = compile(range);
