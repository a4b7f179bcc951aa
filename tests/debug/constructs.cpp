// A model written with the constructs, to be looked at in a debugger.
#include <cstdio>
#include <cstring>
#include <lantern/lantern.hpp>

using namespace lantern;

Rep<double> wave(Rep<double> start) {
  Rep<double> angle = 2.0 * start;
  Rep<double> height = sin(angle) * angle;
  Rep<double> low = WHILE(
      height, [](Rep<double> level) { return level > 1.0; },
      [](Rep<double> level) {
        Rep<double> half = 0.5 * level;
        return half;
      });
  return low * low;
}

LANTERN_FUNCTION(slope, grad(wave))

int main(int argc, char** argv) {
  const bool by_run = argc > 1 && std::strcmp(argv[1], "eager") == 0;
  std::printf("%.12g\n", by_run ? eager(grad(wave))(1.0) : slope(1.0));
}
