// expect alone: {"write ::f if Lantern has an f, too, f<Rep<double>> if f is a template, or a lambda that calls the one you mean, [](Rep<double> x) { return f(x); }: several functions have this name, or it is a template"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> range(Rep<double> x) { return x * x; }
auto df = compile(range);
