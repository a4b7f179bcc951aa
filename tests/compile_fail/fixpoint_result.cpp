// expect: fixpoint: expected f to give a value of the type of x0
#include "lantern/lantern.hpp"
using namespace lantern;
using D = Rep<double>;
D g(D a) {
  return fixpoint([](D x, D s) { return x > s; }, 1.0, a);
}
