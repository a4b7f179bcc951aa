// expect alone: {"the function returns nothing: a function over Reps returns what it computes; several values as a std::tuple"}
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
void f(D x, D& y) { y = x * x; }
auto g() { return grad(f); }
