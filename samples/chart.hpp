// Charts of lines and dots over two axes, as SVG files (W3C, "Scalable Vector Graphics 1.1").
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <lantern/ir/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What is drawn: series of points, each a line or dots. Points that are not finite are left out.
class Chart {
 public:
  using Points = std::vector<std::pair<double, double>>;

  /// Colours are SVG's: "#1f77b4", "gray". A label that is not empty is at the right, in the colour.
  void line(Points points, std::string colour, std::string label = {}) {
    series_.push_back({std::move(points), std::move(colour), std::move(label), 0});
  }
  void dots(Points points, std::string colour, std::string label = {}, double radius = 2.5) {
    series_.push_back({std::move(points), std::move(colour), std::move(label), radius});
  }

  /// Error: the file cannot be written.
  void write(const std::filesystem::path& file, std::string_view title, std::string_view along = {}) const {
    std::ofstream out(file);
    out << drawn(title, along);
    if (!out.flush()) throw lantern::Error("expected to write a picture, cannot write " + file.string());
  }

 private:
  struct Series {
    Points points;
    std::string colour, label;
    double radius;  // of dots; 0: a line
  };
  /// One direction: values from lo to hi, at places from `from` to `to`; marks a round number apart.
  struct Axis {
    double lo, hi, from, to, mark;
    Axis(double least, double most, double a, double b, int marks) : lo(least), hi(most), from(a), to(b) {
      if (!(hi > lo)) hi = lo + 1;
      const double rough = (hi - lo) / marks, power = std::pow(10.0, std::floor(std::log10(rough)));
      mark = power * (rough < 1.5 * power ? 1 : rough < 3 * power ? 2 : rough < 7 * power ? 5 : 10);
      lo = std::floor(lo / mark) * mark, hi = std::ceil(hi / mark) * mark;
    }
    double place(double v) const { return from + (to - from) * (v - lo) / (hi - lo); }
    std::vector<double> marks() const {
      std::vector<double> all;
      for (double k = std::round(lo / mark); k <= std::round(hi / mark); ++k) all.push_back(k * mark);
      return all;
    }
  };

  std::string drawn(std::string_view title, std::string_view along) const {
    double x0 = HUGE_VAL, x1 = -HUGE_VAL, y0 = HUGE_VAL, y1 = -HUGE_VAL;
    for_each_point([&](double a, double b) {
      x0 = std::min(x0, a), x1 = std::max(x1, a), y0 = std::min(y0, b), y1 = std::max(y1, b);
    });
    if (x0 > x1) x0 = y0 = 0, x1 = y1 = 1;
    const Axis x(x0, x1, 60, 590, 8), y(y0, y1, 350, 50, 6);
    std::string svg =
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 400' font-family='sans-serif' "
        "font-size='12'>\n"
        "<rect width='720' height='400' fill='white'/>\n";
    const auto text = [&](double px, double py, const char* anchor, std::string_view s,
                          std::string_view colour = "black") {
      svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}' fill='{}'>{}</text>\n", px, py, anchor,
                         colour, escaped(s));
    };
    const auto rule = [&](double ax, double ay, double bx, double by) {
      svg += fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='#ddd'/>\n", ax, ay,
                         bx, by);
    };
    for (const double v : x.marks()) {
      rule(x.place(v), y.from, x.place(v), y.to);
      text(x.place(v), y.from + 18, "middle", fmt::format("{:.6g}", v));
    }
    for (const double v : y.marks()) {
      rule(x.from, y.place(v), x.to, y.place(v));
      text(x.from - 8, y.place(v) + 4, "end", fmt::format("{:.6g}", v));
    }
    text((x.from + x.to) / 2, 28, "middle", title);
    text((x.from + x.to) / 2, 390, "middle", along);
    double label = y.to + 10;
    for (const Series& s : series_) {
      std::string path;
      for (const auto& [a, b] : s.points) {
        if (!std::isfinite(a) || !std::isfinite(b)) continue;
        path += s.radius > 0 ? fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='{}'/>", x.place(a), y.place(b),
                                           s.radius)
                             : fmt::format("{:.1f},{:.1f} ", x.place(a), y.place(b));
      }
      svg += s.radius > 0
                 ? fmt::format("<g fill='{}'>{}</g>\n", s.colour, path)
                 : fmt::format("<polyline fill='none' stroke='{}' stroke-width='1.5' points='{}'/>\n",
                               s.colour, path);
      if (s.label.empty()) continue;
      text(x.to + 10, label, "start", s.label, s.colour);
      label += 18;
    }
    return svg + "</svg>\n";
  }
  template <class F>
  void for_each_point(const F& f) const {
    for (const Series& s : series_)
      for (const auto& [a, b] : s.points)
        if (std::isfinite(a) && std::isfinite(b)) f(a, b);
  }
  static std::string escaped(std::string_view text) {
    std::string s;
    for (const char c : text) s += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return s;
  }

  std::vector<Series> series_;
};
