// expect: the signature of this callable cannot be seen (a generic lambda?): write sig<double(double)>(f)
#include "lantern/lantern.hpp"
using namespace lantern;
auto g = grad([](auto x) { return x * x; });
