// Plots as SVG text: lines over logarithmic axes, and groups of bars.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lantern::bench {

/// Points joined by a line, in the order given.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

struct PlotLabels {
  std::string title, x, y;
};

/// Lines over axes that are both logarithmic, with ticks at powers of ten, a mark at each point and a legend.
/// Points that are not finite and positive are left out. Error where no point remains.
std::string line_plot(const PlotLabels& labels, const std::vector<Series>& series);

/// Plots one below the other.
std::string stacked(const std::vector<std::string>& plots);

/// One bar a series in each group; `values[s][g]` is the value of series s in group g. The vertical axis is
/// linear from zero, or logarithmic where the largest value is more than 50 times the smallest. Each bar is
/// labelled with its value; a value that is not finite and positive has no bar. Error
/// where a series has not one value for each group, or where no value is positive.
std::string bar_plot(const PlotLabels& labels, const std::vector<std::string>& groups,
                     const std::vector<std::string>& series, const std::vector<std::vector<double>>& values);

}  // namespace lantern::bench
