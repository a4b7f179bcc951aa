// Mistakes that other compilers and staging find must keep their lines.
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> early(Rep<double> x, Rep<Array<double>> a) {
  if (x > 0.0) return x;
  Rep<Tensor<double>> t = as_tensor(a);
  if (x > -1.0) return t(0);
  return dot(t, outer(t, t));
}

LANTERN_FUNCTION(wrong, early)

int main() { return 0; }
