// Two small functions, for outputs that are looked at.
#include <cstdio>

#include "lantern/lantern.hpp"

lantern::Rep<double> cubic(lantern::Rep<double> x) { return 2.0 * x + x * x * x; }
lantern::Rep<double> halved(lantern::Rep<double> x) {
  return lantern::WHILE(
      x, [](lantern::Rep<double> t) { return t > 1.0; }, [](lantern::Rep<double> t) { return t * t * 0.4; });
}
LANTERN_FUNCTION(dcubic, lantern::grad(cubic))
LANTERN_FUNCTION(dhalved, lantern::grad(halved))

int main() { std::printf("%.15g %.15g\n", dcubic(3.0), dhalved(2.0)); }
