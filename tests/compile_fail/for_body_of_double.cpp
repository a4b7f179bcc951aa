// expect alone: the body of FOR takes the index, a Rep<int64_t>, then the state, or its components one by one: FOR(0, n, s, [&](auto i, auto s) { return s + a[i]; })
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
D f(A x) { return FOR(0, x.size(), D(0.0), [&](I i, double s) { return s + x[i]; }); }
