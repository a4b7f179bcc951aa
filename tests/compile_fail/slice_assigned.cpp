// expect: a temporary is assigned, which changes nothing: rows and slices are values
#include "lantern/lantern.hpp"
using namespace lantern;
void f(Rep<Array<double>> a) { a.slice(0, 1) += a.slice(1, 2); }
