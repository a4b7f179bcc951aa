// A plug-in: a shared library with functions that compile themselves, by tcc and by Clang.
#include <lantern/lantern.hpp>
#include <vector>

using namespace lantern;

namespace {

Rep<double> cube(Rep<double> x) { return x * x * x; }
LANTERN_FUNCTION(dcube, grad(cube))

}  // namespace

extern "C" double slope(double x);
extern "C" double slope(double x) { return dcube(x); }

extern "C" double both_compilers(double x);
extern "C" double both_compilers(double x) {
  double sum = 0;
  for (const Target target : {Target::c, Target::cpp}) sum += compile(grad(cube), {.target = target})(x);
  return sum;
}
