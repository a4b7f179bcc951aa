// expect: operands of two different Rep types: convert one, for example as_tensor(array)
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<Tensor<double>> f(Rep<Tensor<double, dyn>> t, Rep<Array<float>> a) { return t * a; }
