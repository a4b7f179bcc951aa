// expect alone: {"a derivative is taken by one mode; nest them: grad<mode::taped>(grad<mode::forward>(f))"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return x * x; }
auto g() { return grad<mode::taped, mode::forward>(f); }
