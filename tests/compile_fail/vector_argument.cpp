// expect: expected a std::array of Reps, or a Rep<Array<...>>, whose size is data, got a std::vector of Reps
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<double> f(std::vector<Rep<double>> v) { return v[0]; }
auto c = compile(f);
