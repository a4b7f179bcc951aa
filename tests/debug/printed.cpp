// A model that prints, with native control flow.
#include <cstdio>
#include <cstring>
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> newton(Rep<double> square) {
  Rep<double> root = square;
  while (true) {
    Rep<double> next = print_adjoint(0.5 * (root + square / root), "adjoint of next");
    print(next, "next");
    if (abs(next - root) < 0.5) return next;
    root = next;
  }
}

LANTERN_FUNCTION(slope, grad(newton))
LANTERN_FUNCTION(logarithm, sig<double(double)>([](auto x) { return log(x); }))

int main(int argc, char** argv) {
  const bool eagerly = argc > 1 && std::strcmp(argv[1], "eager") == 0;
  std::printf("%.12g\n", eagerly ? eager(grad(newton))(4.0) : slope(4.0));
  try {
    std::printf("%.12g\n", logarithm(-1.0));
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
  }
}
