// expect alone: {"a Rep has no value yet; print(x, \"x\") prints it when the program runs"}
#include "lantern/lantern.hpp"
#include <iostream>
using namespace lantern;
Rep<double> f(Rep<double> x) {
  std::cout << x << "\n";
  return x;
}
