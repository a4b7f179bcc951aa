// expect alone: {"IF takes two lambdas without parameters, IF(c, [&] { return a; }, [&] { return b; }); select(c, a, b) takes values"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return IF(x > 0.0, x, -x); }
