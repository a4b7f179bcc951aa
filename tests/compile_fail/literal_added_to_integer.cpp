// expect: a number with a fraction is used as a whole one, or beside a Rep of whole numbers, and would lose its fraction: write cast<double>(n) for the Rep, or static_cast<std::int64_t>(x) for the number
#include "lantern/lantern.hpp"
using namespace lantern;
void f(Rep<int64_t>& n) { n += 0.5; }
