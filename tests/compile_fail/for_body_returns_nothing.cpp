// expect alone: the body of FOR returns the next state; this one returns nothing or another type
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
D f(A x) { return FOR(0, x.size(), D(0.0), [&](I i, D s) { s = s + x[i]; }); }
