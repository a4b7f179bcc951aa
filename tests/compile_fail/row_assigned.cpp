// expect: a temporary is assigned, which changes nothing: rows and slices are values
#include "lantern/lantern.hpp"
using namespace lantern;
void f(Rep<Tensor<double, dyn, dyn>> t, Rep<Tensor<double>> v) { t.row(0) = v; }
