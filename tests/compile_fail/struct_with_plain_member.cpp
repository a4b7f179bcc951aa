// expect: a struct that a function over Reps takes or gives holds Reps only: make this plain member a Rep
#include "lantern/lantern.hpp"
using namespace lantern;
struct Scaled {
  Rep<double> x;
  double factor;
};
Rep<double> f(Scaled s) { return s.x * s.factor; }
auto g = compile(f);
