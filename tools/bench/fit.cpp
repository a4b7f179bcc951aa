#include "fit.hpp"

#include <cmath>

#include "lantern/ir/error.hpp"

namespace lantern::bench {

PowerLaw power_law(const std::vector<std::pair<double, double>>& points) {
  double mean_x = 0, mean_y = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [x, y] : points) {
    if (!(x > 0) || !(y > 0)) throw Error("expected positive numbers to fit a power law to");
    mean_x += std::log(x) / n;
    mean_y += std::log(y) / n;
  }
  double xx = 0, xy = 0, yy = 0;
  for (const auto& [x, y] : points) {
    const double dx = std::log(x) - mean_x, dy = std::log(y) - mean_y;
    xx += dx * dx, xy += dx * dy, yy += dy * dy;
  }
  if (points.size() < 2 || xx < 1e-12)
    throw Error("expected at least two different sizes to fit a power law to");
  const double slope = xy / xx;
  return {slope, std::exp(mean_y - slope * mean_x), yy > 0 ? xy * xy / (xx * yy) : 1.0};
}

}  // namespace lantern::bench
