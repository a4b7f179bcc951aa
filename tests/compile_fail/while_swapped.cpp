// expect: the condition of WHILE gives a Rep<bool>; it comes before the body
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
using A = Rep<Array<double>>;
using I = Rep<int64_t>;
D f(D x) { return WHILE(x, [](D y) { return y * 0.5; }, [](D y) { return y > 1.0; }); }
