// expect alone: {"the signature of this callable cannot be seen (a generic lambda?): write sig<double(double)>(f)"}
#include "lantern/lantern.hpp"
using namespace lantern;
LANTERN_FUNCTION(df, [](auto x) { return x * x; })
double y = df(3.0);
