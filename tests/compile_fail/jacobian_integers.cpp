// expect: jacobian: expected floating scalars, arrays and tensors, and products of those as the result
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<int64_t> f(Rep<Array<double>> x) { return x.size(); }
auto g() { return jacobian(f); }
