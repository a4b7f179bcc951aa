// expect: set(i, j, value): write the value with a decimal point
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<Tensor<double, dyn, dyn>> f(Rep<Tensor<double, dyn, dyn>> t) { return t.set(0, 1, 2); }
