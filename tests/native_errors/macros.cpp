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
#define ADD_AND_STOP(v) \
  s += v;               \
  break
#define ADD_AND_GO_ON(v) \
  s += v;                \
  continue
#define HALVE_AND_RETURN(v) \
  s = 0.5 * v;              \
  return s

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
Rep<double> stopping(Rep<double> x) {
  Rep<double> s = x;
  while (s < 9.0) {
    s = s * 2.0;
    if (s > 4.0) {
      ADD_AND_STOP(1.0);
    }
  }
  return s;
}
Rep<double> going_on(Rep<double> x) {
  Rep<double> s = x;
  for (Rep<int64_t> i = 0; i < 9; ++i) {
    if (s > 4.0) {
      ADD_AND_GO_ON(x);
    }
    s = s * 2.0;
  }
  return s;
}
Rep<double> returning_from_loop(Rep<double> x) {
  Rep<double> s = x;
  while (s < 9.0) {
    s = s * 2.0;
    if (s > 4.0) {
      HALVE_AND_RETURN(s);
    }
  }
  return s;
}
Rep<double> stopping_behind_if(Rep<double> x) {
  Rep<double> s = x;
  while (s < 9.0) {
    s = s * 2.0;
    if (s > 4.0) ADD_AND_STOP(1.0);
  }
  return s;
}
