// expect alone: {"write a lambda that calls the function you mean, [](Rep<double> x) { return f(x); }, or choose it by its arguments, f<Rep<double>>: several functions have this name, or it is a template"}
#include "lantern/lantern.hpp"
using namespace lantern;
template <class T>
T f(T x) {
  return x * x;
}
LANTERN_FUNCTION(df, grad(f))
double y = df(3.0);
