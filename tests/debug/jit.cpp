// The same model as constructs.cpp, compiled by the program itself.
#include <cstdio>
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> wave(Rep<double> start) {
  Rep<double> angle = 2.0 * start;
  Rep<double> height = sin(angle) * angle;
  return height * height;
}

int main() {
  const auto slope = compile(grad(wave), {.debug = true});
  std::printf("%.12g\n", slope(1.0));
}
