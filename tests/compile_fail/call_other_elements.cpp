// expect alone: {"df takes (std::span<const double>, double); argument 1 is a std::vector<float>"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> g(Rep<Array<double>> a, Rep<double> x) { return sum(a) * x; }
LANTERN_FUNCTION(df, grad<1>(g))
const std::vector<float> v;
double y = df(v, 1.0);
