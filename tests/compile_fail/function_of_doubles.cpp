// expect alone: {"write the function over Reps, for example Rep<double> f(Rep<double> x): parameter 2 is a double, which has a value only when the program runs"}
#include "lantern/lantern.hpp"
using namespace lantern;
double f(Rep<double>, double y) { return y * y; }
LANTERN_FUNCTION(df, grad(f))
double y = df(3.0);
