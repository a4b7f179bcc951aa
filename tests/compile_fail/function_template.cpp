// expect alone: {"write ::f if Lantern has an f, too, f<Rep<double>> if f is a template, or a lambda that calls the one you mean, [](Rep<double> x) { return f(x); }: several functions have this name, or it is a template"}
#include "lantern/lantern.hpp"
using namespace lantern;
template <class T>
T f(T x) {
  return x * x;
}
LANTERN_FUNCTION(df, grad(f))
double y = df(3.0);
