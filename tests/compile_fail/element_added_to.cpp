// expect: a temporary is assigned, which changes nothing: elements are values. Write a = a.set(i, v)
#include "lantern/lantern.hpp"
using namespace lantern;
void f(Rep<Tensor<double, 3, 3>> t) { t(0, 1) += 1.0; }
