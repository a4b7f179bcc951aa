// expect alone: {"compile: expected nothing between < and >, only a function between ( and )"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x, Rep<int64_t> n, Rep<double> y) { return x * y * cast<double>(n); }
auto g() { return compile<0>(f); }
