// expect alone: the condition of WHILE takes the state, or its components one by one: WHILE(s, [&](auto s) { return s > 1.0; }, body)
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
D f(D x) { return WHILE(x, [](D y, D z) { return y > z; }, [](D y) { return 0.5 * y; }); }
