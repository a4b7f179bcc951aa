// expect: this struct cannot be split into its members
#include "lantern/lantern.hpp"
using namespace lantern;
struct Base {
  Rep<double> a;
};
struct Derived : Base {
  Rep<double> b;
};
Rep<double> f(Derived d) { return d.a * d.b; }
auto g = compile(f);
