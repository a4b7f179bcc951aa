// Compiles a derivative at run time, by an installed Lantern.
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> f(Rep<double> x) { return 2.0 * x + x * x * x; }

LANTERN_FUNCTION(df, grad(f))

int main() { return df(3.0) == 29.0 && compile(f)(3.0) == 33.0 ? 0 : 1; }
