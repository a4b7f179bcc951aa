// expect: one branch of IF returns a value, the other none
#include "lantern/lantern.hpp"
using namespace lantern;
void f(Rep<double> x) { IF(x > 0.0, [&] { return x; }, [&] {}); }
