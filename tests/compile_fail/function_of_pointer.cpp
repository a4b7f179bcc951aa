// expect alone: {"write the function over Reps, for example Rep<double> f(Rep<Array<double>> x): parameter 1 is a double*, which has a value only when the program runs"}
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
double f(double* x) { return *x; }
auto g() { return compile(f); }
