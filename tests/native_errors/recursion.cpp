// Recursion that cannot be staged.
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> endless(Rep<double> x) {
  if (x > 0.0) x = x - 1.0;
  return endless(x) + 1.0;
}
Rep<double> endless_in_both(Rep<double> x) {
  if (x > 0.0) return endless_in_both(x - 1.0);
  return endless_in_both(x + 1.0);
}
void halve(Rep<double>& x) {
  if (x > 1.0) {
    x = x * 0.5;
    halve(x);
  }
}
Rep<double> changes_argument(Rep<double>& x, Rep<std::int64_t> n) {
  if (n == 0) return x;
  x = x * 2.0;
  return changes_argument(x, n - 1);
}
void nothing_returned(Rep<double> x) {
  if (x > 1.0) nothing_returned(x * 0.5);
}
int plain_result(Rep<double> x) {
  if (x > 1.0) return 1 + plain_result(x * 0.5);
  return 0;
}
struct Chain {
  Rep<double> factor;
  Rep<double> apply(Rep<double> x) const {
    if (x > 100.0) return x;
    return apply(x * factor);
  }
};
Rep<double> member(Rep<double> x) { return Chain{x}.apply(x); }
