// expect alone: {"df takes (std::int64_t); argument 1 is a double, whose fraction would be lost: write static_cast<std::int64_t>(x)"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<std::int64_t> f(Rep<std::int64_t> n) { return n + 1; }
LANTERN_FUNCTION(df, f)
auto y = df(2.5);
