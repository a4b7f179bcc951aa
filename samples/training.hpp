// What programs that train models share: their options, curves of the loss as pictures, parameters in files.
//
//   int main(int argc, char** argv) {
//     Training options{.epochs = 3};
//     CLI::App app("Trains ...");
//     add_options(app, options);
//     CLI11_PARSE(app, argc, argv);
//     ...
//     finish(options, model, curve, "training loss");
//
// Programs link with Lantern::data.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <lantern/data.hpp>
#include <lantern/nn.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the command line says.
struct Training {
  std::filesystem::path data = {};       ///< the folder of real data; empty: data made on the spot
  std::filesystem::path export_to = {};  ///< a .safetensors file that gets the parameters
  std::filesystem::path curve = {};      ///< an .svg file that gets a picture of the loss
  int epochs = 1;
  int threads = 1;
  std::uint64_t seed = 1;
};

/// Where data sets are: --data, else $LANTERN_DATA, else ../shared/data beside the project where it exists,
/// else empty.
inline std::filesystem::path data_folder(const Training& options) {
  if (!options.data.empty()) return options.data;
  if (const char* named = std::getenv("LANTERN_DATA"); named != nullptr && *named != '\0') return named;
  const auto beside = std::filesystem::path(__FILE__).parent_path() / "../../shared/data";
  return is_directory(beside) ? beside.lexically_normal() : std::filesystem::path();
}

/// --epochs, --seed, --export, --curve: for programs that make their data themselves. `epochs` says what an
/// epoch is, or what their number limits.
inline void add_run_options(CLI::App& app, Training& options, const std::string& epochs) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a line is seen when it is printed, in a file too
  app.add_option("--epochs", options.epochs, epochs)->check(CLI::Range(0, 1'000'000));
  app.add_option("--seed", options.seed, "of the random numbers");
  app.add_option("--export", options.export_to,
                 "write the parameters, by their names, to a .safetensors file")
      ->type_name("FILE");
  app.add_option("--curve", options.curve, "draw the loss into an .svg file")->type_name("FILE");
}
inline void add_threads_option(CLI::App& app, Training& options) {
  app.add_option("--threads", options.threads, "threads of a compiled function")->check(CLI::Range(1, 64));
}
/// All of these, and --data [DIR]; without DIR it means data_folder.
inline void add_options(CLI::App& app, Training& options) {
  const auto folder = [&options](const std::string& given) {
    options.data = given;
    options.data = data_folder(options);
    if (!is_directory(options.data))
      throw CLI::ValidationError("--data",
                                 fmt::format("expected a folder, found none at '{}'; name one, or set "
                                             "LANTERN_DATA",
                                             options.data.string()));
  };
  app.add_option_function<std::string>(
         "--data", folder, "use the real data in DIR; without DIR: in $LANTERN_DATA or ../shared/data")
      ->expected(0, 1)
      ->type_name("DIR");
  add_run_options(app, options, "times that the data are gone through; 0: what suits them");
  add_threads_option(app, options);
}

// ---- a picture of the loss

/// Losses of steps, and their picture: a line over the steps.
class LossCurve {
 public:
  void add(double step, double loss) { points_.emplace_back(step, loss); }

  /// An SVG file. Error: it cannot be written. What is not finite is left out.
  void write(const std::filesystem::path& file, std::string_view title) const {
    std::ofstream out(file);
    out << drawn(title);
    if (!out.flush()) throw lantern::Error("expected to write a picture, cannot write " + file.string());
  }

 private:
  /// One direction of the picture: values from lo to hi, at places from `from` to `to`; `mark` is the distance
  /// of marks, a round number.
  struct Axis {
    double lo, hi, from, to, mark;

    Axis(double least, double most, double a, double b, int marks) : lo(least), hi(most), from(a), to(b) {
      if (!(hi > lo)) hi = lo + (lo == 0 ? 1 : std::abs(lo));
      const double rough = (hi - lo) / marks, power = std::pow(10.0, std::floor(std::log10(rough)));
      mark = power * (rough < 1.5 * power ? 1 : rough < 3 * power ? 2 : rough < 7 * power ? 5 : 10);
      lo = std::floor(lo / mark) * mark;
      hi = std::ceil(hi / mark) * mark;
    }
    double place(double v) const { return from + (to - from) * (v - lo) / (hi - lo); }
    template <class F>
    void for_each_mark(const F& f) const {
      const int count = static_cast<int>(std::lround((hi - lo) / mark));
      for (int i = 0; i <= count; ++i) f(mark * (std::round(lo / mark) + i));
    }
  };

  std::string drawn(std::string_view title) const {
    std::vector<std::pair<double, double>> points;
    for (const auto& p : points_)
      if (std::isfinite(p.first) && std::isfinite(p.second)) points.push_back(p);
    double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
    if (!points.empty()) {
      x0 = x1 = points[0].first;
      y1 = points[0].second;
    }
    for (const auto& [step, loss] : points) {
      x0 = std::min(x0, step), x1 = std::max(x1, step);
      y0 = std::min(y0, loss), y1 = std::max(y1, loss);
    }
    const Axis x(x0, x1, 70, 620, 8), y(y0, y1, 350, 50, 6);
    std::string svg =
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 400' font-family='sans-serif' "
        "font-size='12'>\n"
        "<rect width='640' height='400' fill='white'/>\n<g stroke='#ddd'>\n";
    const auto line = [&](double ax, double ay, double bx, double by) {
      svg += fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}'/>\n", ax, ay, bx, by);
    };
    const auto text = [&](double px, double py, const char* anchor, const std::string& s) {
      svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", px, py, anchor, s);
    };
    x.for_each_mark([&](double v) { line(x.place(v), y.from, x.place(v), y.to); });
    y.for_each_mark([&](double v) { line(x.from, y.place(v), x.to, y.place(v)); });
    svg += "</g>\n<g stroke='black'>\n";
    line(x.from, y.from, x.to, y.from);
    line(x.from, y.from, x.from, y.to);
    svg += "</g>\n";
    x.for_each_mark([&](double v) { text(x.place(v), y.from + 18, "middle", fmt::format("{:.6g}", v)); });
    y.for_each_mark([&](double v) { text(x.from - 8, y.place(v) + 4, "end", fmt::format("{:.6g}", v)); });
    text((x.from + x.to) / 2, 390, "middle", "step");
    text((x.from + x.to) / 2, 28, "middle", escaped(title));
    svg += "<polyline fill='none' stroke='#1f77b4' stroke-width='1.5' points='";
    for (const auto& [step, loss] : points)
      svg += fmt::format("{:.1f},{:.1f} ", x.place(step), y.place(loss));
    return svg + "'/>\n</svg>\n";
  }
  static std::string escaped(std::string_view text) {
    std::string s;
    for (const char c : text) s += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return s;
  }

  std::vector<std::pair<double, double>> points_;
};

// ---- results in files

/// Writes what --curve asks for, with `title` above the curve, and gives the file of --export, empty where none is asked
/// for. Error: a file cannot be written, or that of --export is no .safetensors.
inline std::filesystem::path write_curve(const Training& options, const LossCurve& curve, std::string_view title) {
  if (!options.curve.empty()) curve.write(options.curve, title);
  if (!options.export_to.empty() && options.export_to.extension() != ".safetensors")
    throw lantern::Error("--export: expected a name that ends in .safetensors, got " +
                         options.export_to.string());
  return options.export_to;
}
/// The same, and writes the tensors, or the model, that were found into the file of --export.
inline void finish(const Training& options, const lantern::NamedTensors& found, const LossCurve& curve,
                   std::string_view title) {
  const auto file = write_curve(options, curve, title);
  if (!file.empty()) lantern::save_safetensors(file, found);
}
template <class M>
void finish(const Training& options, const M& model, const LossCurve& curve, std::string_view title) {
  const auto file = write_curve(options, curve, title);
  if (!file.empty()) lantern::nn::save(file, model);
}
