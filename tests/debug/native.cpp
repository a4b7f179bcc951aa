// A model with native control flow, to be looked at in a debugger.
#include <cstdio>
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> newton(Rep<double> square) {
  Rep<double> root = square;
  while (true) {
    Rep<double> next = 0.5 * (root + square / root);
    if (abs(next - root) < 1e-14) return next;
    root = next;
  }
}

LANTERN_FUNCTION(slope, grad(newton))

int main() { std::printf("%.12g\n", slope(9.0)); }
