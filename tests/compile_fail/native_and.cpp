// Overloaded && cannot short-circuit: AND(a, [&] { return b; }) does.
// expect: use of deleted function
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<bool> f(Rep<double> x) { return x > 0.0 && x < 1.0; }
