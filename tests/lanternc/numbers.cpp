// What numbers a program gives where that is a choice: a loop that comes to subnormal ones, and a sum whose
// order shows.
#include <cstdio>
#include <lantern/lantern.hpp>
#include <vector>

using namespace lantern;

Rep<double> halve(Rep<double> x, Rep<int64_t> n) {
  return FOR(0, n, x, [](Rep<int64_t>, Rep<double> y) { return y * 0.5; });
}
Rep<double> sum_of(Rep<Array<double>> a) {
  return FOR(0, a.size(), Rep<double>(0.0), [&](Rep<int64_t> i, Rep<double> s) { return s + a[i]; });
}

LANTERN_FUNCTION(halved, halve)
LANTERN_FUNCTION(total, sum_of)

int main() {
  std::vector<double> a;
  for (int i = 0; i < 1000; ++i) a.push_back(1.0 / (3 + i));
  double in_order = 0;
  for (const double x : a) in_order += x;
  std::printf("subnormal numbers are %s, sums are %s\n", halved(1.0, 1060) > 0 ? "kept" : "zero",
              total(a) == in_order ? "in order" : "in any order");
}
