// expect: a Rep<bool> has no value yet
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(Rep<double> x) { return x > 0.0 ? x : -x; }
