// An assignment is no condition.
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> in_if(Rep<double> x) {
  Rep<double> y = x * x;
  if (x = 1.0) y += 3.0;
  return y;
}
Rep<double> in_while(Rep<double> x, Rep<bool> more) {
  while (more = x > 1.0) x = x * 0.5;
  return x;
}
// Parentheses of its own say that it is meant.
Rep<double> meant(Rep<double> x, Rep<bool> more) {
  while ((more = x > 1.0)) x = x * 0.5;
  return x;
}
