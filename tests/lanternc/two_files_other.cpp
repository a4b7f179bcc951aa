// The other one.
#include <lantern/lantern.hpp>

lantern::Rep<double> first(lantern::Rep<double> x) { return 2.0 * x * x; }
LANTERN_FUNCTION(dg, lantern::grad(first))

double other(double x);
double other(double x) { return dg(x); }
