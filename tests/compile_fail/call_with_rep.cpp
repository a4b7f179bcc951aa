// expect alone: {"the function takes (double); argument 1 is a Rep<double>: inside a program call the function over Reps itself"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return x; }
auto df = compile(f);
Rep<double> h(Rep<double> x) { return df(x); }
