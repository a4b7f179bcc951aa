// expect: vmap: expected scalars, arrays and tensors of numbers, or products of them
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
D f(D x, Rep<Tree<double>> t) { return x * t.value(); }
auto g() { return vmap(f); }
