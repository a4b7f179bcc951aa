// expect alone: a Rep has no value yet; print(x, "x") prints it when the program runs
#include "lantern/lantern.hpp"
#include <fmt/format.h>
using namespace lantern;
Rep<double> f(Rep<Array<double>> x) {
  fmt::print("{}\n", x);
  return x[0];
}
