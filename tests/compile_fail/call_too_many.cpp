// expect alone: {"the function takes (std::span<const double>, double), got 3 arguments"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> g(Rep<Array<double>> a, Rep<double> x) { return sum(a) * x; }
const std::vector<double> v;
double y = compile(g)(v, 1.0, 2.0);
