// expect: operands of two different Rep types: convert one, for example cast<double>(n)
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n) { return x * n; }
