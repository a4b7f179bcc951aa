#include "series.hpp"

namespace lantern::bench::reference {

double series(double x, std::int64_t n) {
  double prev = 1, acc = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    prev = prev * -(x - 1);
    acc = prev + acc;
  }
  return acc;
}

}  // namespace lantern::bench::reference
