// expect alone: {"df takes (std::span<const double>, double), got 1 argument"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> g(Rep<Array<double>> a, Rep<double> x) { return sum(a) * x; }
LANTERN_FUNCTION(df, grad<1>(g))
const std::vector<double> v;
double y = df(v);
