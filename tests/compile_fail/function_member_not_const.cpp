// expect alone: {"a member function that is not const may change its object, and is no function over Reps: keep the struct outside, and write a lambda over it, [&](Rep<double> x) { return s.f(x); }; or, where all members are Reps, write const behind its parameters"}
#include "lantern/lantern.hpp"
using namespace lantern;
struct Spring {
  double stiffness;
  Rep<double> energy(Rep<double> x) { return stiffness * x * x; }
};
LANTERN_FUNCTION(force, grad(&Spring::energy))
double y = force(3.0);
