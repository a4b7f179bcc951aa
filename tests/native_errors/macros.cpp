// Staged control flow written by macros.
#include <lantern/lantern.hpp>

using namespace lantern;

#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define RETURN_IF(c, v) \
  if (c) return v
#define UNLESS(c) if (!(c))
#define BOTH(a, b) ((a) && (b))
#define UNTIL(c) while (!(c))
#define BEGIN {

Rep<double> choice(Rep<double> x) { return LARGER(x, 1.0); }
Rep<double> returning(Rep<double> x) {
  RETURN_IF(x > 0.0, x);
  return -x;
}
Rep<double> keyword(Rep<double> x) {
  UNLESS(x > 0.0) x = -x;
  return x;
}
Rep<double> conjunction(Rep<double> x) {
  if (BOTH(x > 0.0, x < 1.0)) x = x * 2.0;
  return x;
}
Rep<double> loop(Rep<double> x) {
  UNTIL(x < 1.0) x = x * 0.5;
  return x;
}
Rep<double> brace(Rep<double> x) BEGIN
  if (x > 0.0) return x;
  return -x;
}
