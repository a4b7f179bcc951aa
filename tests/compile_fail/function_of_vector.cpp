// expect alone: {"write the function over Reps, for example Rep<double> f(Rep<Array<double>> x): parameter 2 is a std::vector<double>, which has a value only when the program runs"}
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
D f(D x, std::vector<double> v) { return v[0] * x; }
auto g() { return grad(f); }
