// expect: hessian<mode>: expected mode::reverse, one reverse pass; hessian(f) is by forward over reverse mode
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<Array<double>> x) { return x[0] * x[1]; }
auto g() { return hessian<mode::taped>(f); }
