// A file with other mistakes: Clang's own messages.
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> undeclared(Rep<double> x) {
  if (x > 0.0) return y;
  return x;
}
