// expect alone: {"the function takes (TensorView<const double>); argument 1 is a std::vector<double>: its shape is not known; write TensorView<const double>(v.data(), {rows, columns})"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<Tensor<double, dyn, dyn>> m) { return sum(m); }
const std::vector<double> v;
double y = eager(f)(v);
