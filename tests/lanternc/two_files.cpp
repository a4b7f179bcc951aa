// One of two files of a program that each have a function of the same name.
#include <cstdio>
#include <lantern/lantern.hpp>

lantern::Rep<double> second(lantern::Rep<double> x) { return 5.0 * x * x; }
LANTERN_FUNCTION(dg, lantern::grad(second))

double other(double x);

int main() { std::printf("%g %g\n", other(1.0), dg(1.0)); }
