// Computes a derivative without a compiler linked in.
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> f(Rep<double> x) { return 2.0 * x + x * x * x; }

int main() { return eager(grad(f))(3.0) == 29.0 ? 0 : 1; }
