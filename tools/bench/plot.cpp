#include "plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "lantern/ir/error.hpp"

namespace lantern::bench {
namespace {

/// Colours that colour-blind readers distinguish (Okabe and Ito, "Color Universal Design", 2008).
constexpr std::array<std::string_view, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#000000"};
std::string_view colour(std::size_t i) { return kColours[i % kColours.size()]; }
/// Lines beyond the colours are dashed.
std::string_view dashes(std::size_t i) { return i < kColours.size() ? "" : " stroke-dasharray=\"6 4\""; }

constexpr double kTop = 50, kLeft = 80, kLegend = 170;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

/// A drawing area with a title, axis names and a legend at its right.
class Canvas {
 public:
  /// `bottom`: room for tick labels and the name of the x axis.
  Canvas(double width, double height, double bottom, const PlotLabels& labels)
      : width_(width), height_(height) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} {1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"white\"/>\n",
        kLeft + width + kLegend, kTop + height + bottom);
    label(kLeft + width / 2, kTop - 22, labels.title, "middle", "font-size=\"15\"");
    label(kLeft + width / 2, kTop + height + bottom - 12, labels.x, "middle");
    label(18, kTop + height / 2, labels.y, "middle",
          fmt::format("transform=\"rotate(-90 18 {:.1f})\"", kTop + height / 2));
  }

  /// Fractions of the area, from its lower left corner, as places on the page.
  double x(double fraction) const { return kLeft + fraction * width_; }
  double y(double fraction) const { return kTop + (1 - fraction) * height_; }

  void label(double at_x, double at_y, std::string_view text, std::string_view anchor,
             std::string_view more = "") {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", at_x, at_y,
                         anchor, more, escaped(text));
  }
  void line(double x1, double y1, double x2, double y2, std::string_view stroke) {
    text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n",
                         x1, y1, x2, y2, stroke);
  }
  void raw(const std::string& svg) { text_ += svg; }
  void frame() {
    text_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
        "stroke=\"#333333\"/>\n",
        kLeft, kTop, width_, height_);
  }
  void legend(std::size_t i, std::string_view name) {
    const double at = kTop + 10 + 20 * static_cast<double>(i);
    text_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n",
                         kLeft + width_ + 14, at - 6, colour(i));
    label(kLeft + width_ + 32, at + 4, name, "start");
  }
  /// For a line: a piece of it, with a mark.
  void line_legend(std::size_t i, std::string_view name) {
    const double from = kLeft + width_ + 12, at = kTop + 10 + 20 * static_cast<double>(i);
    text_ += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}h28\" stroke=\"{2}\" stroke-width=\"1.6\"{3}/>\n"
        "<rect x=\"{4:.1f}\" y=\"{5:.1f}\" width=\"6\" height=\"6\" rx=\"3\" fill=\"{2}\"/>\n",
        from, at, colour(i), dashes(i), from + 11, at - 3);
    label(from + 36, at + 4, name, "start");
  }
  std::string finish() const { return text_ + "</svg>\n"; }

 private:
  double width_, height_;
  std::string text_;
};

/// A logarithmic axis whose ends are powers of ten.
struct LogAxis {
  int first = 0, last = 1;

  explicit LogAxis(double low, double high)
      : first(static_cast<int>(std::floor(std::log10(low) + 1e-9))),
        last(static_cast<int>(std::ceil(std::log10(high) - 1e-9))) {
    if (last <= first) last = first + 1;
  }
  double fraction(double value) const { return (std::log10(value) - first) / (last - first); }
};

std::string power_of_ten(int exponent) {
  if (exponent >= -3 && exponent <= 3) return fmt::format("{:g}", std::pow(10, exponent));
  return fmt::format("1e{}", exponent);
}

/// 1, 2 or 5 times a power of ten: a distance of ticks that gives about five of them.
double tick_distance(double most) {
  const double rough = most / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0})
    if (rough <= step * power * (1 + 1e-9)) return step * power;
  return 10 * power;
}

void draw_y_ticks(Canvas& canvas, const LogAxis& y_axis) {
  for (int e = y_axis.first; e <= y_axis.last; ++e) {
    const double at = canvas.y(y_axis.fraction(std::pow(10, e)));
    canvas.line(canvas.x(0), at, canvas.x(1), at, "#dddddd");
    canvas.label(canvas.x(0) - 8, at + 4, power_of_ten(e), "end");
    for (int m = 2; m < 10 && e < y_axis.last; ++m) {
      const double minor = canvas.y(y_axis.fraction(m * std::pow(10, e)));
      canvas.line(canvas.x(0), minor, canvas.x(0) + 4, minor, "#333333");
    }
  }
}

bool drawable(double v) { return std::isfinite(v) && v > 0; }

}  // namespace

std::string line_plot(const PlotLabels& labels, const std::vector<Series>& series) {
  std::vector<double> xs, ys;
  for (const Series& s : series)
    for (const auto& [x, y] : s.points)
      if (drawable(x) && drawable(y)) xs.push_back(x), ys.push_back(y);
  if (xs.empty()) throw Error("expected a positive point to plot, got none");
  const auto [low_x, high_x] = std::minmax_element(xs.begin(), xs.end());
  const auto [low_y, high_y] = std::minmax_element(ys.begin(), ys.end());
  const LogAxis x_axis(*low_x, *high_x), y_axis(*low_y, *high_y);

  Canvas canvas(640, 420, 60, labels);
  for (int e = x_axis.first; e <= x_axis.last; ++e) {
    const double at = canvas.x(x_axis.fraction(std::pow(10, e)));
    canvas.line(at, canvas.y(0), at, canvas.y(1), "#dddddd");
    canvas.label(at, canvas.y(0) + 18, power_of_ten(e), "middle");
    for (int m = 2; m < 10 && e < x_axis.last; ++m) {
      const double minor = canvas.x(x_axis.fraction(m * std::pow(10, e)));
      canvas.line(minor, canvas.y(0), minor, canvas.y(0) - 4, "#333333");
    }
  }
  draw_y_ticks(canvas, y_axis);
  canvas.frame();
  for (std::size_t i = 0; i < series.size(); ++i) {
    std::string path, marks;
    for (const auto& [x, y] : series[i].points) {
      if (!drawable(x) || !drawable(y)) continue;
      const double at_x = canvas.x(x_axis.fraction(x)), at_y = canvas.y(y_axis.fraction(y));
      path += fmt::format("{:.1f},{:.1f} ", at_x, at_y);
      marks +=
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", at_x, at_y, colour(i));
    }
    canvas.raw(fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"{}/>\n",
                           path, colour(i), dashes(i)));
    canvas.raw(marks);
    canvas.line_legend(i, series[i].name);
  }
  return canvas.finish();
}

std::string stacked(const std::vector<std::string>& plots) {
  const auto number_after = [](const std::string& svg, std::string_view name) {
    const std::size_t at = svg.find(name);
    return at == std::string::npos ? 0.0 : std::stod(svg.substr(at + name.size()));
  };
  constexpr std::string_view start = "<svg ";
  double width = 0, height = 0;
  std::string parts;
  for (const std::string& svg : plots) {
    parts += fmt::format("<svg y=\"{:.0f}\" ", height) + svg.substr(start.size());
    width = std::max(width, number_after(svg, " width=\""));
    height += number_after(svg, " height=\"");
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
             width, height) +
         parts + "</svg>\n";
}

std::string bar_plot(const PlotLabels& labels, const std::vector<std::string>& groups,
                     const std::vector<std::string>& series, const std::vector<std::vector<double>>& values) {
  double most = 0, least = std::numeric_limits<double>::infinity();
  if (values.size() != series.size())
    throw Error(fmt::format("expected values of {} series, got {}", series.size(), values.size()));
  for (const auto& row : values) {
    if (row.size() != groups.size())
      throw Error(fmt::format("expected a value for each of {} groups, got {}", groups.size(), row.size()));
    for (const double v : row)
      if (drawable(v)) most = std::max(most, v), least = std::min(least, v);
  }
  if (most == 0) throw Error("expected a positive value to plot, got none");
  // Bars of which one would hide another's height stand on a logarithmic axis.
  const bool logarithmic = most > 50 * least;
  const LogAxis log_axis(least / 1.5, most);
  const double step = tick_distance(most), top = step * std::ceil(most / step + 0.1);

  const double bar = 26, gap = 30, bottom = 110;
  const double group_width = bar * static_cast<double>(series.size()) + gap;
  const double width = std::max(320.0, group_width * static_cast<double>(groups.size()));
  Canvas canvas(width, 360, bottom, labels);
  if (logarithmic) draw_y_ticks(canvas, log_axis);
  for (double tick = 0; !logarithmic && tick <= top * (1 + 1e-9); tick += step) {
    const double at = canvas.y(tick / top);
    canvas.line(canvas.x(0), at, canvas.x(1), at, "#dddddd");
    canvas.label(canvas.x(0) - 8, at + 4, fmt::format("{:.4g}", tick), "end");
  }
  canvas.frame();
  const double stride = width / static_cast<double>(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const double start = kLeft + stride * static_cast<double>(g) + (stride - group_width + gap) / 2;
    const double middle = start + (group_width - gap) / 2, below = canvas.y(0) + 14;
    canvas.label(middle, below, groups[g], "end",
                 fmt::format("font-size=\"10\" transform=\"rotate(-35 {:.1f} {:.1f})\"", middle, below));
    for (std::size_t s = 0; s < series.size(); ++s) {
      const double v = values[s][g];
      if (!drawable(v)) continue;
      const double upper = canvas.y(logarithmic ? log_axis.fraction(v) : v / top);
      const double at = start + bar * static_cast<double>(s), height = canvas.y(0) - upper;
      canvas.raw(
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                      at, upper, bar - 3, height, colour(s)));
      canvas.label(at + bar / 2 - 1, upper - 4, fmt::format("{:.3g}", v), "middle", "font-size=\"9\"");
    }
  }
  for (std::size_t s = 0; s < series.size(); ++s) canvas.legend(s, series[s]);
  return canvas.finish();
}

}  // namespace lantern::bench
