#include "fit.hpp"

#include <algorithm>
#include <cmath>

#include "lantern/ir/error.hpp"

namespace lantern::bench {

Line straight_line(const std::vector<std::pair<double, double>>& points) {
  double mean_x = 0, mean_y = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto& [x, y] : points) {
    mean_x += x / n;
    mean_y += y / n;
  }
  double xx = 0, xy = 0, yy = 0;
  for (const auto& [x, y] : points) {
    const double dx = x - mean_x, dy = y - mean_y;
    xx += dx * dx, xy += dx * dy, yy += dy * dy;
  }
  if (points.size() < 2 || xx <= 1e-12 * mean_x * mean_x)
    throw Error("expected at least two different sizes to fit a line to");
  const double slope = xy / xx;
  return {slope, mean_y - slope * mean_x, yy > 0 ? xy * xy / (xx * yy) : 1.0};
}

double parabola_r2(const std::vector<std::pair<double, double>>& points) {
  const Line line = straight_line(points);
  double most = 0, mean_y = 0;
  for (const auto& [x, y] : points) {
    most = std::max(most, std::abs(x));
    mean_y += y / static_cast<double>(points.size());
  }
  // What a line leaves of x^2 is orthogonal to lines: what it explains adds to what the line does.
  std::vector<std::pair<double, double>> squares;
  for (const auto& point : points) squares.emplace_back(point.first, std::pow(point.first / most, 2));
  const Line through = straight_line(squares);
  double qq = 0, qy = 0, yy = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [x, y] = points[i];
    const double q = squares[i].second - (through.intercept + through.slope * x);
    qq += q * q, qy += q * (y - mean_y), yy += (y - mean_y) * (y - mean_y);
  }
  if (qq < 1e-12 || !(yy > 0)) return line.r2;
  return std::min(1.0, line.r2 + qy * qy / (qq * yy));
}

PowerLaw power_law(const std::vector<std::pair<double, double>>& points) {
  std::vector<std::pair<double, double>> logarithms;
  double spread = 0;
  for (const auto& [x, y] : points) {
    if (!(x > 0) || !(y > 0)) throw Error("expected positive numbers to fit a power law to");
    logarithms.emplace_back(std::log(x), std::log(y));
    spread = std::max(spread, std::abs(logarithms.back().first - logarithms.front().first));
  }
  if (spread < 1e-6) throw Error("expected at least two different sizes to fit a power law to");
  const Line line = straight_line(logarithms);
  return {line.slope, std::exp(line.intercept), line.r2};
}

}  // namespace lantern::bench
