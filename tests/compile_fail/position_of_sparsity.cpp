// expect alone: {"jacobian_sparsity: expected the position of one argument, as jacobian_sparsity<1>(f), got a mode"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return jacobian_sparsity<mode::forward>(f); }
