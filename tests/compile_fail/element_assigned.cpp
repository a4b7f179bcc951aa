// expect: a temporary is assigned, which changes nothing: elements are values. Write a = a.set(i, v)
#include "lantern/lantern.hpp"
using namespace lantern;
void f(Rep<Array<double>> a) { a[0] = 1.0; }
