// expect alone: {"df.into takes a target for each result, (std::vector<double>), then the arguments, (std::span<const double>), got 1 argument"}
#include "lantern/lantern.hpp"
using namespace lantern;
Rep<Array<double>> f(Rep<Array<double>> a) { return 2.0 * a; }
LANTERN_FUNCTION(df, f)
void h() {
  std::vector<double> v(2);
  df.into(v);
}
