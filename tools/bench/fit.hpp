// Straight lines through measurements.
#pragma once

#include <utility>
#include <vector>

namespace lantern::bench {

/// y = factor x^slope, and how much of the logarithms' variance that explains.
struct PowerLaw {
  double slope = 0, factor = 0, r2 = 0;
};

/// Least squares over the logarithms of points (x, y), as a line in a log-log plot. Error where fewer than
/// two different x are given, or a number is not positive.
PowerLaw power_law(const std::vector<std::pair<double, double>>& points);

/// y = intercept + slope x, and how much of the variance that explains.
struct Line {
  double slope = 0, intercept = 0, r2 = 0;
};

/// Least squares over points (x, y). Error where fewer than two different x are given.
Line straight_line(const std::vector<std::pair<double, double>>& points);

/// How much of the variance the best parabola explains: at least what the best line does. Error as for a
/// line; of two different x it explains all.
double parabola_r2(const std::vector<std::pair<double, double>>& points);

}  // namespace lantern::bench
