// expect alone: {"df.into takes a target for each result, (std::vector<double>), then the arguments, (std::span<const double>); target 1 is a std::vector<float>"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<Array<double>> f(Rep<Array<double>> a) { return 2.0 * a; }
LANTERN_FUNCTION(df, f)
void h() {
  std::vector<double> v(2);
  std::vector<float> out(2);
  df.into(out, v);
}
