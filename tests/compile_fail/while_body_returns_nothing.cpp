// expect alone: the body of WHILE returns the next state; this one returns nothing or another type
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
D f(D x) { return WHILE(x, [](D y) { return y > 1.0; }, [](D y) { y = 0.5 * y; }); }
