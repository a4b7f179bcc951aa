// expect: jacobian: expected mode::forward or mode::reverse
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<Array<double>> f(Rep<Array<double>> x) { return x * x; }
auto g() { return jacobian<mode::taped>(f); }
